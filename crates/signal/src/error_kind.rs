//! Kinds of error.

/// The kind of failure of an error, by which a program may choose its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is out of range, or incompatible with another.
    Setting,
    /// The input is invalid.
    Input,
    /// A dictionary or a network is invalid.
    Model,
    /// The [`ProgressCallback`](crate::progress::ProgressCallback) cancelled the work.
    Cancelled,
    /// Any other failure.
    Other,
}
