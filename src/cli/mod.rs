//! The commands.

pub mod eval;
mod systems;
