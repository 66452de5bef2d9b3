//! Blocks share a sampler and nothing else: neither each other's states nor gradients, whatever moves them.

use crate::proof::{boxed, constant};
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::Gaussian;
use alphamf_samplers::*;

const DIMENSION: usize = 3;
const BLOCKS: usize = 4;

/// Terms `(theta_i - n)^2 / 2 + theta_i^4 / 8` of every block, with a dense metric and with sites of one or two unknowns.
#[derive(Clone)]
struct Bowls {
    blocks: usize,
    is_diagonal: bool,
}

const TERMS: usize = 6;

impl Target<f64> for Bowls {
    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn terms(&self) -> usize {
        TERMS
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        for (gradient, x) in gradient.iter_mut().zip(theta) {
            let terms = batch.iter().map(|n| x - n as f64 + 0.5 * x.powi(3));
            *gradient = batch.scale() * terms.sum::<f64>();
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        let bowl =
            |x: &f64| (0..TERMS).map(|n| 0.5 * (x - n as f64).powi(2) + 0.125 * x.powi(4)).sum::<f64>();
        for (potential, x) in potential.iter_mut().zip(theta.chunks_exact(DIMENSION)) {
            *potential = x.iter().map(bowl).sum();
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(self)
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<f64>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Metric<f64> for Bowls {
    fn is_diagonal(&self) -> bool {
        self.is_diagonal
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        let own = |x: f64| 8.0 + x * x;
        if self.is_diagonal {
            metric.iter_mut().zip(theta).for_each(|(metric, &x)| *metric = own(x));
            return;
        }
        let squares = metric.chunks_exact_mut(DIMENSION * DIMENSION);
        for (metric, x) in squares.zip(theta.chunks_exact(DIMENSION)) {
            for (k, metric) in metric.iter_mut().enumerate() {
                let (i, j) = (k % DIMENSION, k / DIMENSION);
                *metric = if i == j { own(x[i]) } else { 1.0 };
            }
        }
    }
}

impl Curvature<f64> for Bowls {
    fn hessian_diagonal(&mut self, theta: &[f64], _: Minibatch<'_>, diagonal: &mut [f64]) {
        let terms = TERMS as f64;
        diagonal.iter_mut().zip(theta).for_each(|(diagonal, x)| *diagonal = terms * (1.0 + 1.5 * x * x));
    }
}

impl Sites<f64> for Bowls {
    fn count(&self) -> usize {
        2
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: if index == 0 { 0..2 } else { 2..3 }, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[f64],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let rows = Sites::<f64>::site(self, index).rows;
        let (n, mut slopes, mut curvatures) = (rows.len(), vec![0.0; theta.len()], vec![0.0; theta.len()]);
        self.potential(theta, potential);
        self.gradient(theta, Minibatch::full(TERMS), &mut slopes);
        self.hessian_diagonal(theta, Minibatch::full(TERMS), &mut curvatures);
        hessian.fill(0.0);
        for block in 0..self.blocks {
            for (k, row) in rows.clone().enumerate() {
                gradient[block * n + k] = slopes[block * DIMENSION + row];
                hessian[(block * n + k) * n + k] = curvatures[block * DIMENSION + row];
            }
        }
    }
}

/// Every sampler in every of its forms.
fn samplers(blocks: usize) -> Vec<(String, Box<dyn Sampler<f64>>)> {
    let (streams, n) = (SeedTree::new(6), DIMENSION);
    let gradient = constant(1e-3);
    let pair = GradientSettings { minibatch: Some(2), ..gradient };
    let dense = Matrix::Dense(vec![1.0, 0.2, 0.1, 0.2, 1.5, 0.3, 0.1, 0.3, 0.8]);
    let hmc = HmcSettings { step_size: 0.05, ..HmcSettings::default() };
    let near = MhBfgsSettings { scale: 0.1, ..MhBfgsSettings::default() };
    let hamcmc = HamcmcSettings { gradient, ..HamcmcSettings::default() };
    let sghmc = SghmcSettings { gradient, friction: 1.0 };
    let sgnht = SgnhtSettings { gradient, diffusion: 1.0 };
    let corrected = PsgldSettings { gradient, correction: true, ..PsgldSettings::default() };
    let mut all: Vec<(String, Box<dyn Sampler<f64>>)> = vec![
        ("PSGLD, corrected".into(), boxed(Psgld::new(n, blocks, corrected, streams))),
        ("SGFS".into(), boxed(Sgfs::new(n, blocks, pair, streams))),
        // At its default, almost nothing is accepted on these targets.
        ("MH-BFGS, near".into(), boxed(MhBfgs::new(n, blocks, near, streams))),
        ("NUTS".into(), boxed(Nuts::new(n, blocks, NutsSettings::default(), streams))),
        ("RMHMC".into(), boxed(Rmhmc::new(n, blocks, hmc, streams))),
        (
            "SGLD with D and V".into(),
            boxed(
                Sgld::new(n, blocks, gradient, streams)
                    .and_then(|sgld| sgld.with_diffusion(&dense)?.with_gradient_noise(&dense)),
            ),
        ),
        (
            "SGRLD with V".into(),
            boxed(Sgrld::new(n, blocks, gradient, streams).and_then(|it| it.with_gradient_noise(&dense))),
        ),
        (
            "SGHMC with V".into(),
            boxed(Sghmc::new(n, blocks, sghmc, streams).and_then(|it| it.with_gradient_noise(&dense))),
        ),
        (
            "SGNHT with V".into(),
            boxed(Sgnht::new(n, blocks, sgnht, streams).and_then(|it| it.with_gradient_noise(&dense))),
        ),
        (
            "SGRHMC with V".into(),
            boxed(Sgrhmc::new(n, blocks, gradient, streams).and_then(|it| it.with_gradient_noise(&dense))),
        ),
        ("HAMCMC, moves".into(), boxed(Hamcmc::new(n, blocks, hamcmc, streams))),
        (
            "HMC with a mass".into(),
            boxed(Hmc::new(n, blocks, hmc, streams).and_then(|it| it.with_mass(&dense))),
        ),
    ];
    let step_size = Some(gradient.step_size);
    for kind in SamplerKind::ALL {
        let options = SamplerOptions { step_size, ..SamplerOptions::default() };
        all.push((kind.name().to_owned(), kind.build(n, blocks, &options, streams).unwrap()));
    }
    all
}

/// The states of every block after a few draws from `starts`.
fn run(target: &Bowls, sampler: Box<dyn Sampler<f64>>, starts: &[f64]) -> Vec<Vec<f64>> {
    let mut chain = Chain::new(target.clone(), sampler, starts.to_vec()).unwrap();
    chain.burn_in(3);
    chain.run(40, |_| ());
    chain.state().chunks_exact(DIMENSION).map(<[f64]>::to_vec).collect()
}

#[test]
fn a_block_does_not_see_where_another_starts() {
    let starts: Vec<f64> = (0..BLOCKS * DIMENSION).map(|i| 0.4 + 0.11 * i as f64).collect();
    for is_diagonal in [true, false] {
        let target = Bowls { blocks: BLOCKS, is_diagonal };
        for (index, (name, sampler)) in samplers(BLOCKS).into_iter().enumerate() {
            let before = run(&target, sampler, &starts);
            assert!(
                before.iter().zip(starts.chunks_exact(DIMENSION)).all(|(end, start)| end != start),
                "{name}"
            );
            for moved in 0..BLOCKS {
                let mut elsewhere = starts.clone();
                elsewhere[moved * DIMENSION + 1] += 0.3;
                let after = run(&target, samplers(BLOCKS).swap_remove(index).1, &elsewhere);
                for block in 0..BLOCKS {
                    // Blocks of RMHMC iterate as long as any of them moves: the same but for rounding.
                    let apart = before[block].iter().zip(&after[block]).map(|(a, b)| (a - b).abs());
                    let apart = apart.fold(0.0, f64::max);
                    assert!(block == moved || apart < 1e-9, "{name}: {moved} moves {block} by {apart}");
                }
            }
        }
    }
}

/// In single precision, and in blocks large enough to be shared between threads.
#[test]
fn blocks_are_different_and_do_not_depend_on_threads() {
    let (dimension, blocks) = (40, 300);
    let run = |kind: SamplerKind, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut target = Gaussian::equicorrelated(dimension, 4.0, 1.0).with_blocks(blocks);
            let mut sampler =
                kind.build::<f32>(dimension, blocks, &SamplerOptions::default(), SeedTree::new(4)).unwrap();
            let mut chain = Chain::new(&mut target, &mut *sampler, vec![0.5; dimension * blocks]).unwrap();
            chain.burn_in(2);
            chain.run(4, |_| ());
            chain.state().to_vec()
        })
    };
    for kind in SamplerKind::ALL {
        let one = run(kind, 1);
        assert_eq!(one, run(kind, 3), "{kind}");
        assert!(one[..dimension] != one[dimension..2 * dimension], "{kind}");
    }
}
