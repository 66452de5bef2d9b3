//! Positive-stable draws: time per draw, in blocks of a frame's length.
use alphamf::{random::SeedTree, stable::PositiveStable};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_distr::Distribution;

fn draws(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("positive_stable");
    let mut stream = SeedTree::new(1).rng(0);
    for bins in [257, 513, 16_384] {
        group.throughput(Throughput::Elements(bins as u64));
        let mut out = vec![0.0_f32; bins];
        for (name, a) in [("general", 0.6), ("levy", 0.5)] {
            let Ok(law) = PositiveStable::new(a) else { continue };
            group.bench_function(format!("fill/{name}/{bins}"), |b| {
                b.iter(|| law.fill(&mut stream, &mut out))
            });
        }
    }
    group.throughput(Throughput::Elements(1));
    if let Ok(law) = PositiveStable::new(0.6) {
        group.bench_function("single/f32", |b| b.iter(|| Distribution::<f32>::sample(&law, &mut stream)));
        group.bench_function("single/f64", |b| b.iter(|| Distribution::<f64>::sample(&law, &mut stream)));
    }
    group.finish();
}

criterion_group!(benches, draws);
criterion_main!(benches);
