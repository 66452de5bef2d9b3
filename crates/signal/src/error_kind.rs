//! Kinds of error.

/// What kind of failure an error is: what a program answers for, as by its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is out of its range, or does not go with another.
    Setting,
    /// The input is invalid.
    Input,
    /// A dictionary or a network is invalid.
    Model,
    /// The [`ProgressCallback`](crate::progress::ProgressCallback) ended the work.
    Cancelled,
    /// None of these.
    Other,
}
