"""What every perturbation must keep to, checked on one: the user's own, or one of this package."""
