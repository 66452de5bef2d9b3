//! `denoise`: the command line of the `alphamf` speech denoiser.

fn main() {}
