"""From a study's runs in MLflow to its tables, figures and page."""
