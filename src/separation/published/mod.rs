//! What samplers of the papers ask of the factors beyond full gradients; the default needs none of it.

mod metrics;
mod minibatches;
mod sites;
