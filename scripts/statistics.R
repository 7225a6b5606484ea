# Writes tests/analysis/fixtures/expected.csv: R's numbers for the tables beside it, which the tests compare ours with.
# Debian 12: apt-get install -y --no-install-recommends r-base-core r-cran-coin r-cran-afex r-cran-lme4
# From the repository's root: Rscript scripts/statistics.R
suppressPackageStartupMessages({ library(coin); library(afex); library(lme4) })
folder <- "tests/analysis/fixtures"
found <- data.frame()

table_of <- function(name) read.csv(file.path(folder, paste0(name, ".csv")))

keep <- function(data, test, ...) {
  numbers <- c(...)
  stopifnot(is.numeric(numbers), all(is.finite(numbers)))
  digits <- trimws(formatC(unname(numbers), digits = 15, format = "g"))
  rows <- data.frame(data = data, test = test, quantity = names(numbers), value = digits)
  found <<- rbind(found, rows)
}

named <- function(numbers, names) setNames(as.numeric(numbers), names)

pairs_of <- function(k) combn(k, 2, simplify = FALSE)

# Friedman with Kendall's W, and Conover's pairs (Conover 1999, section 5.8; no package of Debian's has it).
ranked <- function(name) {
  X <- as.matrix(table_of(name)); n <- nrow(X); k <- ncol(X)
  f <- friedman.test(X)
  q <- unname(f$statistic)
  keep(name, "friedman", q = q, df = unname(f$parameter), p = f$p.value, w = q / (n * (k - 1)))
  R <- t(apply(X, 1, rank)); sums <- colSums(R); df <- (n - 1) * (k - 1)
  error <- sqrt(2 * (n * sum(R^2) - sum(sums^2)) / df)
  for (at in pairs_of(k)) {
    t <- (sums[at[1]] - sums[at[2]]) / error
    p <- 2 * pt(-abs(t), df)
    pair <- paste(colnames(X)[at], collapse = "-")
    # r of a contrast (Rosenthal, Rosnow & Rubin 2000): t / sqrt(t^2 + df).
    keep(name, "conover", named(c(t, p, min(1, p * choose(k, 2)), t / sqrt(t^2 + df)),
                                paste(pair, c("t", "p", "p_bonferroni", "r"), sep = ".")))
  }
}

# One way of repeated measures: F and p of aov with an Error stratum; sphericity by base R's mauchly.test; epsilon and
# its p by base R's anova.mlm and by afex (car), generalised eta squared by afex; paired t tests.
measured <- function(name) {
  X <- as.matrix(table_of(name)); n <- nrow(X); k <- ncol(X)
  long <- data.frame(y = c(X), s = factor(rep(seq_len(n), k)), a = factor(rep(colnames(X), each = n)))
  rows <- summary(aov(y ~ a + Error(s / a), long))[["Error: s:a"]][[1]]
  keep(name, "anova", F = rows[["F value"]][1], df1 = rows[["Df"]][1], df2 = rows[["Df"]][2], p = rows[["Pr(>F)"]][1])
  m <- lm(X ~ 1)
  if (k > 2) {
    mauchly <- mauchly.test(m, X = ~1)
    keep(name, "mauchly", W = unname(mauchly$statistic), p = mauchly$p.value)
    contrasts <- contr.helmert(k); contrasts <- sweep(contrasts, 2, sqrt(colSums(contrasts^2)), "/")
    S <- t(contrasts) %*% cov(X) %*% contrasts
    epsilon <- sum(diag(S))^2 / ((k - 1) * sum(S^2))
    by_car <- aov_ez("s", "y", long, within = "a", anova_table = list(correction = "none"))
    by_car <- suppressWarnings(summary(by_car))$pval.adjustments
    stopifnot(abs(by_car["a", "GG eps"] - epsilon) < 1e-9)
    keep(name, "gg", epsilon = epsilon, p = by_car["a", "Pr(>F[GG])"])
  }
  effect <- aov_ez("s", "y", long, within = "a", anova_table = list(correction = "none", es = "ges"))$anova_table
  keep(name, "ges", ges = effect["a", "ges"])
  for (at in pairs_of(k)) {
    t <- t.test(X[, at[1]], X[, at[2]], paired = TRUE)
    d <- X[, at[1]] - X[, at[2]]
    spread <- sqrt((var(X[, at[1]]) + var(X[, at[2]])) / 2)
    pair <- paste(colnames(X)[at], collapse = "-")
    keep(name, "t", named(c(t$statistic, t$parameter, t$p.value, min(1, t$p.value * choose(k, 2)),
                            mean(d), mean(d) / sd(d), mean(d) / spread),
                          paste(pair, c("t", "df", "p", "p_bonferroni", "difference", "d_z", "d_av"), sep = ".")))
  }
}

# Page's trend over the columns: coin gives z on condition of the ties; L by its definition.
trended <- function(name) {
  X <- as.matrix(table_of(name)); n <- nrow(X); k <- ncol(X)
  long <- data.frame(y = c(X), s = factor(rep(seq_len(n), k)), a = factor(rep(colnames(X), each = n), ordered = TRUE))
  page <- coin::friedman_test(y ~ a | s, data = long)
  R <- t(apply(X, 1, rank))
  keep(name, "page", L = sum(colSums(R) * seq_len(k)), z = as.numeric(statistic(page)), p = as.numeric(pvalue(page)),
       constant = sum(apply(X, 1, function(row) all(row == row[1]))))
}

for (name in c("plain", "even", "ties", "binary")) { ranked(name); measured(name); trended(name) }

# Several factors within: aov with Error for F, df and p; afex for both eta squared.
long <- table_of("within"); long[1:4] <- lapply(long[1:4], factor)
strata <- summary(aov(value ~ perturb * level * model + Error(subject / (perturb * level * model)), long))
for (stratum in strata) {
  rows <- stratum[[1]]; names <- trimws(rownames(rows))
  for (at in which(names != "Residuals")) {
    error <- rows[names == "Residuals", "Df"]
    keep("within", "anova", named(c(rows[at, "F value"], rows[at, "Df"], error, rows[at, "Pr(>F)"]),
                                  paste(names[at], c("F", "df1", "df2", "p"), sep = ".")))
  }
}
for (es in c("pes", "ges")) {
  rows <- aov_ez("subject", "value", long, within = c("perturb", "level", "model"),
                 anova_table = list(correction = "none", es = es))$anova_table
  keep("within", es, named(rows[[es]], rownames(rows)))
}

# Associations of counts.
counted <- function(name) {
  O <- as.matrix(table_of(name)[-1]); n <- sum(O)
  test <- suppressWarnings(chisq.test(O, correct = FALSE))
  keep(name, "chi2", chi2 = unname(test$statistic), df = unname(test$parameter), p = test$p.value,
       v = sqrt(unname(test$statistic) / (n * (min(dim(O)) - 1))), least_expected = min(test$expected))
  keep(name, "fisher", p = fisher.test(O, workspace = 2e7)$p.value)
}
counted("counts"); counted("fourfold")

# Pairs of 0/1.
both <- table_of("paired")
O <- table(factor(both$clean, 0:1), factor(both$disturbed, 0:1))
lost <- O["1", "0"]; gained <- O["0", "1"]
plain <- mcnemar.test(O, correct = FALSE); careful <- mcnemar.test(O, correct = TRUE)
keep("paired", "mcnemar", lost = lost, gained = gained, chi2 = unname(plain$statistic), p = plain$p.value,
     chi2_corrected = unname(careful$statistic), p_corrected = careful$p.value,
     p_exact = binom.test(gained, gained + lost)$p.value,
     p_exact_greater = binom.test(gained, gained + lost, alternative = "greater")$p.value,
     p_exact_less = binom.test(gained, gained + lost, alternative = "less")$p.value)

# Wilson's interval: a row of shares.csv each, as "7/10.low".
shares <- table_of("shares")
for (at in seq_len(nrow(shares))) {
  ends <- suppressWarnings(prop.test(shares$right[at], shares$n[at], correct = FALSE))$conf.int
  keep("shares", "wilson", named(ends, paste0(shares$right[at], "/", shares$n[at], c(".low", ".high"))))
}

# Spearman: exact without ties, by Student's t with them (also given without, for comparison).
for (name in c("correlation", "correlation_ties")) {
  both <- table_of(name)
  t <- suppressWarnings(cor.test(both$x, both$y, method = "spearman", exact = FALSE))
  keep(name, "spearman", rho = unname(t$estimate), p = t$p.value)
  if (name == "correlation") {
    keep(name, "spearman", p_exact = cor.test(both$x, both$y, method = "spearman", exact = TRUE)$p.value)
  }
  tau <- suppressWarnings(cor.test(both$x, both$y, method = "kendall", exact = FALSE))
  keep(name, "kendall", tau = unname(tau$estimate), p = tau$p.value)
}

# A mixed model with an intercept for each text, by REML.
long <- table_of("mixed")
fit <- function(formula, name) {
  m <- lmer(formula, long, REML = TRUE, control = lmerControl(optCtrl = list(ftol_abs = 1e-14, xtol_abs = 1e-12)))
  rows <- coef(summary(m))
  terms <- sub("(Intercept)", "Intercept", rownames(rows), fixed = TRUE)
  spread <- as.data.frame(VarCorr(m))
  keep("mixed", name, named(rows[, "Estimate"], paste0(terms, ".estimate")),
       named(rows[, "Std. Error"], paste0(terms, ".se")),
       named(2 * pnorm(-abs(rows[, "t value"])), paste0(terms, ".p_normal")),
       var_id = spread$vcov[spread$grp == "id"], var_residual = spread$vcov[spread$grp == "Residual"],
       reml = as.numeric(logLik(m)), n = nobs(m), groups = ngrps(m)[["id"]])
}
fit(score ~ medical + edits + (1 | id), "lmer")
fit(score ~ medical + edits + level + (1 | id), "lmer_level") # level: high is the first, so its effect is 0

versions <- data.frame(data = "versions", test = c("R", "coin", "afex", "car", "lme4"), quantity = "version",
  value = c(paste(R.version$major, R.version$minor, sep = "."),
            sapply(c("coin", "afex", "car", "lme4"), function(name) as.character(packageVersion(name)))))
write.csv(rbind(versions, found), file.path(folder, "expected.csv"), row.names = FALSE, quote = FALSE, eol = "\n")
cat(nrow(found), "numbers in", file.path(folder, "expected.csv"), "\n")
