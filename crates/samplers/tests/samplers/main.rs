//! Proofs of the samplers, in one program: a program for each file would compile the targets and samplers again.

mod all_samplers;
mod annotation;
mod blocks;
mod comparators;
mod crf;
mod diagnostics;
mod distributed;
#[path = "../../examples/shared/mod.rs"]
mod example_parts;
mod examples;
mod golden;
mod hamcmc;
mod lda;
mod moments;
mod newtonian;
mod noise;
mod proof;
mod recipes;
mod sites;
mod slopes;
mod targets;
mod truth;
mod unknown_targets;
mod warm_up;
mod warm_up_steps;
