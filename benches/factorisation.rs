//! Stages of a sweep over a tile of frames: products, expectations and gradients, and the Metropolis step of the
//! impulse variables.
//!
//! Throughputs of products count two operations per multiplication, so that Gelem/s are GFLOP/s.
use alphamf::internals::{Factor, ImpulseStep, ImpulseVariables, MarginalTable, Mixture, Workspace};
use alphamf::random::{SeedTree, SeededRng};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::RngExt;

const ALPHA_RANGE: (f64, f64) = (1.2, 1.9);

struct Section {
    mixture: Mixture<f32>,
    activations: Vec<f32>,
    power: Vec<f32>,
}

impl Section {
    fn new(bins: usize, rank: usize, frames: usize, stream: &mut SeededRng) -> Self {
        let mut positive = |count: usize| -> Vec<f32> {
            (0..count).map(|_| stream.random_range(1e-3..1.0_f32).powi(3)).collect()
        };
        Self {
            mixture: Mixture {
                bins,
                speech: Factor { alpha: ALPHA_RANGE.0, spectra: positive(bins * (rank - 1)) },
                noise: Factor { alpha: ALPHA_RANGE.1, spectra: positive(bins) },
            },
            activations: positive(rank * frames),
            power: positive(bins * frames),
        }
    }
}

fn products(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("products");
    let mut stream = SeedTree::new(1).rng(0);
    for (bins, rank, frames) in [(513, 102, 250), (257, 102, 80), (513, 102, 32)] {
        let Section { mixture, activations, power } = Section::new(bins, rank, frames, &mut stream);
        let mut workspace = Workspace::default();
        group.throughput(Throughput::Elements((2 * bins * rank * frames) as u64));
        group.bench_function(format!("dispersions/{bins}x{rank}x{frames}"), |b| {
            b.iter(|| {
                workspace.disperse(&mixture, &activations);
            });
        });
        let table = MarginalTable::new(ALPHA_RANGE.0, ALPHA_RANGE.1);
        let mut dispersed = workspace.disperse(&mixture, &activations);
        let shares = dispersed.evaluate(ImpulseVariables::Integrated(&table), &power);
        let derivatives = shares.update_terms().differentiate();
        let mut gradient = activations.clone();
        group.bench_function(format!("gradient/{bins}x{rank}x{frames}"), |b| {
            b.iter(|| derivatives.activations(&mut gradient));
        });
    }
    group.finish();
}

fn tile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tile");
    let mut stream = SeedTree::new(1).rng(0);
    let (bins, rank, frames) = (513, 102, 32);
    let Section { mixture, activations, power } = Section::new(bins, rank, frames, &mut stream);
    group.throughput(Throughput::Elements((bins * frames) as u64));
    let mut workspace = Workspace::default();
    let table = MarginalTable::new(ALPHA_RANGE.0, ALPHA_RANGE.1);
    let integrated = ImpulseVariables::Integrated(&table);
    let (mut raise, mut lower) = (activations.clone(), activations.clone());
    group.bench_function("gradient/integrated", |b| {
        b.iter(|| {
            let mut dispersed = workspace.disperse(&mixture, &activations);
            dispersed.evaluate(integrated, &power).update_terms().activations(&mut raise, &mut lower);
        });
    });
    let mut dispersed = workspace.disperse(&mixture, &activations);
    group.bench_function("evaluate/integrated", |b| {
        b.iter(|| {
            dispersed.evaluate(integrated, &power);
        });
    });
    let mut step = ImpulseStep::new(ALPHA_RANGE.0, ALPHA_RANGE.1).unwrap();
    let mut sampled = step.draw(power.len(), &mut stream);
    group.bench_function("evaluate/sampled", |b| {
        b.iter(|| {
            dispersed.evaluate(ImpulseVariables::Sampled(&sampled), &power);
        });
    });
    group.bench_function("metropolis", |b| {
        b.iter(|| step.step(&mut sampled, &mixture, dispersed.dispersions(), &power, &mut stream));
    });
    group.finish();
}

criterion_group!(benches, products, tile);
criterion_main!(benches);
