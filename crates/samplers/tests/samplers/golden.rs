//! The first draws of every sampler, pinned bit for bit.
//!
//! To update them: `cargo test -p alphamf-samplers --test samplers golden -- --nocapture`, and copy the output into the
//! column of the CPU's kind.

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::recipe::{self, Recipe, RecipeSampler};
use alphamf_samplers::targets::Gaussian;
use alphamf_samplers::*;
use std::io::Write;

/// A sampler and the checksum of its draws, by kind of CPU: x86-64 with AVX-512, with AVX2 and FMA.
/// Matrix products are computed by other kernels on each.
const GOLDEN: [(&str, [Option<u64>; 2]); 21] = [
    ("sgld", [Some(0x5d99_1bb9_7d36_31b8), Some(0x5d99_1bb9_7d36_31b8)]),
    ("psgld", [Some(0x22c2_7e86_5c49_6030), Some(0x22c2_7e86_5c49_6030)]),
    ("sgrld", [Some(0x0984_2f10_70d3_80dd), Some(0x0984_2f10_70d3_80dd)]),
    ("hamcmc", [Some(0x2a82_2e9e_aac1_2dd1), Some(0x2a82_2e9e_aac1_2dd1)]),
    ("sghmc", [Some(0xf7d9_38ba_cd69_0a60), Some(0xf7d9_38ba_cd69_0a60)]),
    ("sgnht", [Some(0x8b1a_44e7_6b51_6e02), Some(0x8b1a_44e7_6b51_6e02)]),
    ("sgrhmc", [Some(0x1ad0_5b5e_d256_69a7), Some(0x1ad0_5b5e_d256_69a7)]),
    ("hmc", [Some(0x3dd5_9841_5314_01d8), Some(0x3dd5_9841_5314_01d8)]),
    ("mh-bfgs", [Some(0xa7da_4006_2c8d_9b61), Some(0xa7da_4006_2c8d_9b61)]),
    ("hmc-bfgs", [Some(0x55d0_e0c8_3739_00a3), Some(0x55d0_e0c8_3739_00a3)]),
    ("qnhmc", [Some(0x3191_4a3e_ef61_ac0f), Some(0x3191_4a3e_ef61_ac0f)]),
    ("nuts", [Some(0xd64b_e352_9391_74b9), Some(0xd64b_e352_9391_74b9)]),
    ("nmc", [Some(0x49be_bedb_9faa_9e3a), Some(0x49be_bedb_9faa_9e3a)]),
    ("rmhmc", [Some(0xf69d_713a_5d84_3104), Some(0xf69d_713a_5d84_3104)]),
    ("sgfs", [Some(0x05c8_9ba9_a283_0bdb), Some(0x05c8_9ba9_a283_0bdb)]),
    ("recipe: Langevin", [Some(0xbefe_6c88_3b1e_45b1), Some(0xbefe_6c88_3b1e_45b1)]),
    ("recipe: Riemannian Langevin", [Some(0xa236_2f34_1f9f_0d58), Some(0xa236_2f34_1f9f_0d58)]),
    ("recipe: root mean square", [Some(0x04ea_f06f_2370_34ac), Some(0x04ea_f06f_2370_34ac)]),
    ("recipe: friction", [Some(0x7aed_3383_ffa7_54cb), Some(0x7aed_3383_ffa7_54cb)]),
    ("recipe: thermostat", [Some(0xb769_8621_d904_23b3), Some(0xb769_8621_d904_23b3)]),
    ("recipe: Riemannian friction", [Some(0xcff6_3bd0_5ba3_e153), Some(0xcff6_3bd0_5ba3_e153)]),
];

/// The kind of this CPU, as a column of the table.
fn kind() -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return Some(0);
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return Some(1);
    }
    None
}

/// The checksum (64-bit FNV-1a) of some numbers.
fn checksum(values: &[f64]) -> u64 {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A few steps with adaptation and a few without on a Gaussian of three dimensions.
fn draws(sampler: &mut dyn Sampler<f64>) -> Vec<f64> {
    let precision = vec![2.0, 1.2, 0.3, 1.2, 1.5, -0.2, 0.3, -0.2, 0.7];
    let mut target = Gaussian::new(vec![1.0, -0.5, 0.0], precision).unwrap();
    let mut chain = Chain::new(&mut target, sampler, vec![0.0; 3]).unwrap();
    chain.adapt(true);
    chain.run(10, |_| ());
    chain.adapt(false);
    let mut draws = Vec::new();
    chain.run(20, |draw| draws.extend_from_slice(draw.theta));
    draws
}

fn by_recipe(recipe: impl Recipe + 'static) -> Box<dyn Sampler<f64>> {
    Box::new(RecipeSampler::new(3, recipe, GradientSettings::default(), SeedTree::new(3)).unwrap())
}

#[test]
fn first_draws_of_every_sampler_are_as_pinned() {
    let named = SamplerKind::ALL.map(|kind| {
        (kind.name(), kind.build::<f64>(3, 1, &SamplerOptions::default(), SeedTree::new(3)).unwrap())
    });
    let root_mean_square =
        recipe::RootMeanSquare { past: vec![1.0; 3], forgetting: 0.9, regularisation: 1e-3 };
    let subsampled = GradientSettings { minibatch: Some(4), ..GradientSettings::default() };
    let comparators: [(&str, Box<dyn Sampler<f64>>); 2] = [
        ("rmhmc", Box::new(Rmhmc::new(3, 1, HmcSettings::default(), SeedTree::new(3)).unwrap())),
        ("sgfs", Box::new(Sgfs::new(3, 1, subsampled, SeedTree::new(3)).unwrap())),
    ];
    let recipes = [
        ("recipe: Langevin", by_recipe(recipe::Langevin)),
        ("recipe: Riemannian Langevin", by_recipe(recipe::RiemannianLangevin)),
        ("recipe: root mean square", by_recipe(root_mean_square)),
        ("recipe: friction", by_recipe(recipe::Friction(1.0))),
        ("recipe: thermostat", by_recipe(recipe::Thermostat(1.0))),
        ("recipe: Riemannian friction", by_recipe(recipe::RiemannianFriction)),
    ];
    let found: Vec<(&str, u64)> = named
        .into_iter()
        .chain(comparators)
        .chain(recipes)
        .map(|(name, mut sampler)| (name, checksum(&draws(&mut *sampler))))
        .collect();
    found.iter().for_each(|(name, sum)| println!("    (\"{name}\", {sum:#018x}),"));
    let Some(column) = kind() else {
        // Bypasses the test harness, which hides the output of tests that pass.
        writeln!(std::io::stderr(), "SKIPPED: no draws are pinned for this kind of CPU").unwrap();
        return;
    };
    assert_eq!(found.len(), GOLDEN.len());
    for ((name, sum), (pinned, sums)) in found.iter().zip(&GOLDEN) {
        assert_eq!(name, pinned);
        match sums[column] {
            Some(pinned) => assert_eq!(*sum, pinned, "{name}"),
            None => {
                writeln!(std::io::stderr(), "SKIPPED: {name} is not pinned for this kind of CPU").unwrap()
            }
        }
    }
}
