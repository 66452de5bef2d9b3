//! To come.
mod tail;
pub(crate) use tail::log_survival_quantile;
