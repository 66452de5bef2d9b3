//! Distributed samplers: a matrix of blocks, a ring of ranks, and sums in a fixed order.
//!
//! Data are a matrix of `B x B` blocks. The unknowns are `B` blocks for its rows and `B` for its columns, and a block of
//! data depends on the two that cross in it. The part `p` of the data, one of `B`, is the blocks `(b, (b + p) mod B)`: a
//! Latin square, so that every unknown is in exactly one of them. Step `t` moves all unknowns by the gradient on one
//! part, drawn with probability in proportion to its number of observations and weighted by their inverse, which is
//! unbiased. The draw comes from the common seed, so it costs no message.
//!
//! ```text
//! rank            0        1        2        3          (B = 4 blocks on 4 ranks; fewer ranks hold several)
//! rows            w0       w1       w2       w3         never move, nor do the data of these rows
//! columns, p = 0  h0       h1       h2       h3
//! columns, p = 1  h1       h2       h3       h0         one message a rank from part to part
//! ```
//!
//! The columns carry their part of a sampler's memory along: the mean squared gradients of PSGLD, the other states and the
//! pairs of HAMCMC. HAMCMC also needs the inner products of its `2 M` vectors over all blocks, summed in the blocks' order
//! once a step: the result of L-BFGS is a combination of these vectors, with coefficients that each rank computes from those
//! products.
//!
//! All random numbers belong to a block and a step. So a chain is the same bit for bit for the same seed and the same
//! `B`, on any number of ranks.
//!
//! **Source.** `hamcmc-2016` section 4.3. [`BlockTarget`] is a model, [`Communicator`] a way to talk: between threads
//! by [`Local`], between machines by another implementation.

mod chain;
mod communicator;
mod factorisation;

pub use chain::{BlockTarget, DistributedChain, DistributedSettings, Method, Side, held_blocks};
pub use communicator::{Communicator, Counted, Local, pack, unpack};
pub use factorisation::Factorisation;
