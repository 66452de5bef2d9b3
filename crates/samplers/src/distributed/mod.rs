//! Distributed samplers: a matrix of blocks, a ring of ranks, and sums in a fixed order.
//!
//! The data form a matrix of `B x B` blocks. The unknowns are `B` row blocks and `B` column blocks; a data block
//! depends on its row block and its column block. Part `p` of the data, one of `B`, consists of the blocks
//! `(b, (b + p) mod B)`. As in a Latin square, every unknown belongs to exactly one block of a part. Step `t` moves all
//! unknowns by the gradient on one part. The part is drawn with probability proportional to its number of observations,
//! and its gradient is weighted by the inverse of this probability: the estimate is unbiased. The draw uses the common
//! seed, so it needs no message.
//!
//! ```text
//! rank            0        1        2        3          (B = 4 blocks on 4 ranks; fewer ranks hold several)
//! rows            w0       w1       w2       w3         never move, nor do the data of these rows
//! columns, p = 0  h0       h1       h2       h3
//! columns, p = 1  h1       h2       h3       h0         one message a rank from part to part
//! ```
//!
//! Column blocks move with their sampler memory: the mean squared gradients of PSGLD, or the other states and the pairs
//! of HAMCMC. HAMCMC also needs the inner products of its `2 M` vectors over all blocks, summed in block order once per
//! step. The result of L-BFGS is a linear combination of these vectors, whose coefficients each rank computes from the
//! inner products.
//!
//! The block and the step determine every random number. For equal seeds and equal `B`, a chain is therefore
//! bit-identical on any number of ranks.
//!
//! **Source.** `hamcmc-2016` section 4.3. [`BlockTarget`] is a model. [`Communicator`] exchanges messages: [`Local`]
//! between threads, other implementations between machines.

mod chain;
mod communicator;
mod factorisation;

pub use chain::{BlockTarget, DistributedChain, DistributedSettings, Method, Side, held_blocks};
pub use communicator::{Communicator, Counted, Local, pack, unpack};
pub use factorisation::Factorisation;
