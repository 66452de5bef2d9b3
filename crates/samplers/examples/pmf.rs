//! Probabilistic matrix factorisation of movie ratings: `quasi-newton-hmc` section 5.3, Table 3.
//!
//! `--data DIR` names the folder of `train.csv.gz` and `test.csv.gz`, lines of `movie,user,rating` after a header;
//! MovieLens 1M must not be redistributed. `--draws N` sets the number of averaged draws.

mod shared;

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use alphamf_samplers::random::{SeedTree, SeededRng};
use alphamf_samplers::{
    Chain, Hmc, HmcBfgs, HmcBfgsSettings, HmcSettings, Minibatch, Qnhmc, QnhmcSettings, Sampler, Target,
};
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use shared::{Outcome, Report, check_options, number_option, option, plot};

const MOVIES: usize = 3_952;
const USERS: usize = 6_040;
const FACTORS: usize = 10;
/// Index of the users' first factor.
const SPLIT: usize = MOVIES * FACTORS;
const UNKNOWNS: usize = (MOVIES + USERS) * FACTORS;
/// Precision of a rating, as in the demonstration of Salakhutdinov and Mnih (2008).
const PRECISION: f64 = 2.0;
/// Step size of the paper, and a number of draws that shows its effect.
const PUBLISHED: (f64, usize) = (0.01, 20);
/// Draws of burn-in, which adapts the step size.
const BURN_IN: usize = 60;
/// Default number of averaged draws.
const DRAWS: usize = 150;

/// Indices of the first factor of the movie and of the user, and the rating.
type Rating = (usize, usize, f64);
/// The factors of a movie or a user.
type Factors = [f64; FACTORS];

fn read(path: &Path) -> Result<Vec<Rating>, Box<dyn Error>> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines().skip(1);
    let rating = |line: std::io::Result<String>| -> Result<Rating, Box<dyn Error>> {
        let line = line?;
        let fields: Vec<usize> = line.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match fields[..] {
            [movie @ 1..=MOVIES, user @ 1..=USERS, rating] => {
                Ok(((movie - 1) * FACTORS, SPLIT + (user - 1) * FACTORS, rating as f64))
            }
            _ => Err(format!("{}: {line}; expected movie,user,rating", path.display()).into()),
        }
    };
    lines.map(rating).collect()
}

/// Returns the factors from index `start`.
fn factors(theta: &[f64], start: usize) -> &Factors {
    theta[start..].first_chunk().expect("every index of a rating was checked")
}

fn factors_mut(theta: &mut [f64], start: usize) -> &mut Factors {
    theta[start..].first_chunk_mut().expect("every index of a rating was checked")
}

fn dot(a: &Factors, b: &Factors) -> f64 {
    // Two partial sums, as the compiler may not reorder floating-point sums.
    let (a, b) = (a.as_chunks::<2>().0, b.as_chunks::<2>().0);
    let sums = a.iter().zip(b).fold([0.0; 2], |sums, (a, b)| [sums[0] + a[0] * b[0], sums[1] + a[1] * b[1]]);
    sums[0] + sums[1]
}

fn product(theta: &[f64], movie: usize, user: usize) -> f64 {
    dot(factors(theta, movie), factors(theta, user))
}

fn add(sum: &mut Factors, factor: f64, term: &Factors) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum += factor * term);
}

/// Posterior with potential `PRECISION / 2 sum (m'u - rating)^2` and Gaussian priors of the factors of movies and
/// users.
struct Factorisation<'a> {
    /// Sorted by user: a user's factors are loaded and stored once.
    ratings: &'a [Rating],
    /// Prior precisions of the factors of movies and of users.
    priors: [f64; 2],
}

impl Target<f64> for Factorisation<'_> {
    fn dimension(&self) -> usize {
        UNKNOWNS
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        self.evaluate(theta, &mut [0.0], gradient);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        self.evaluate(theta, potential, &mut vec![0.0; UNKNOWNS]);
    }

    fn evaluate(&mut self, theta: &[f64], potential: &mut [f64], gradient: &mut [f64]) {
        let mut prior = 0.0;
        let sides = [&theta[..SPLIT], &theta[SPLIT..]].into_iter().zip(self.priors);
        let (movies, users) = gradient.split_at_mut(SPLIT);
        for ((theta, precision), slopes) in sides.zip([&mut *movies, &mut *users]) {
            slopes.iter_mut().zip(theta).for_each(|(slope, theta)| *slope = precision * theta);
            prior += slopes.iter().zip(theta).map(|(slope, theta)| slope * theta).sum::<f64>();
        }
        let mut squares = 0.0;
        for ratings in self.ratings.chunk_by(|a, b| a.1 == b.1) {
            let start = ratings[0].1;
            let (user, mut slopes) = (factors(theta, start), [0.0; FACTORS]);
            for &(start, _, rating) in ratings {
                let movie = factors(theta, start);
                let error = dot(movie, user) - rating;
                squares += error * error;
                add(&mut slopes, PRECISION * error, movie);
                add(factors_mut(movies, start), PRECISION * error, user);
            }
            add(factors_mut(users, start - SPLIT), 1.0, &slopes);
        }
        potential[0] = (PRECISION * squares + prior) / 2.0;
    }
}

/// Computes the root mean square error of predictions, clamped to the rating scale.
fn error(predictions: impl Iterator<Item = f64>, mean: f64, held_out: &[Rating]) -> f64 {
    let errors = predictions
        .zip(held_out)
        .map(|(found, rating)| ((found + mean).clamp(1.0, 5.0) - mean - rating.2).powi(2));
    (errors.sum::<f64>() / held_out.len() as f64).sqrt()
}

/// Maximises the posterior as in the demonstration: 50 passes of gradient descent with momentum 0.8 over nine batches,
/// with a weight decay of 0.01 per rating.
fn maximise(ratings: &mut [Rating], stream: &mut SeededRng) -> Vec<f64> {
    let mut theta: Vec<f64> =
        (0..UNKNOWNS).map(|_| -> f64 { StandardNormal.sample(stream) }).map(|x| 0.1 * x).collect();
    let (mut slope, mut momentum) = (vec![0.0; UNKNOWNS], vec![0.0; UNKNOWNS]);
    for _ in 0..50 {
        ratings.shuffle(stream);
        for batch in ratings.chunks(ratings.len().div_ceil(9)) {
            slope.fill(0.0);
            for &(start, other, rating) in batch {
                let (movie, user) = (factors(&theta, start), factors(&theta, other));
                let error = 2.0 * (dot(movie, user) - rating);
                for (start, own, other) in [(start, movie, user), (other, user, movie)] {
                    let slope = factors_mut(&mut slope, start);
                    add(slope, error, other);
                    add(slope, 0.01, own);
                }
            }
            let step = 50.0 / batch.len() as f64;
            for ((theta, momentum), slope) in theta.iter_mut().zip(&mut momentum).zip(&slope) {
                *momentum = 0.8 * *momentum + step * slope;
                *theta -= *momentum;
            }
        }
    }
    theta
}

fn main() -> Outcome {
    check_options(&["--data", "--draws"])?;
    let folder = option("--data").ok_or("--data DIR: the folder of the ratings")?;
    let draws = number_option("--draws", DRAWS)?;
    let (mut ratings, mut held_out) =
        (read(&folder.join("train.csv.gz"))?, read(&folder.join("test.csv.gz"))?);
    let mean = ratings.iter().map(|rating| rating.2).sum::<f64>() / ratings.len() as f64;
    ratings.iter_mut().chain(&mut held_out).for_each(|rating| rating.2 -= mean);
    let streams = SeedTree::new(1);
    let start = Instant::now();
    let best = maximise(&mut ratings, &mut streams.rng(0));
    let maximising = start.elapsed().as_secs_f64();
    // Sorted by user, as [`Factorisation`] expects, and by movie for locality in memory.
    ratings.sort_by_key(|&(movie, user, _)| (user, movie));
    let found = error(held_out.iter().map(|&(movie, user, _)| product(&best, movie, user)), mean, &held_out);
    // Priors fitted to the factors.
    let priors = [&best[..SPLIT], &best[SPLIT..]]
        .map(|side| side.len() as f64 / side.iter().map(|x| x * x).sum::<f64>());

    let four = |x: f64| format!("{x:.4}");
    let maximised = ["MAP", &four(found), "", "", "", &format!("{maximising:.1}"), ".8701, 27.7"];
    let (mut table, mut curves) = (vec![maximised.map(str::to_owned).to_vec()], Vec::new());
    for adapts in [false, true] {
        let hmc = HmcSettings { step_size: PUBLISHED.0, leaps: 10, ..HmcSettings::default() };
        let quasi_newton = QnhmcSettings { hmc, adapt_after_burn_in: true, ..QnhmcSettings::default() };
        let ensemble = HmcBfgsSettings { hmc, ..HmcBfgsSettings::default() };
        let samplers: [(&str, &str, Box<dyn Sampler<f64>>); 3] = [
            ("HMC", ".8607, 202.5", Box::new(Hmc::new(UNKNOWNS, 1, hmc, streams.child(1))?)),
            ("QNHMC", ".8628, 108.3", Box::new(Qnhmc::new(UNKNOWNS, 1, quasi_newton, streams.child(2))?)),
            ("HMC-BFGS", ".8618, 179.2", Box::new(HmcBfgs::new(UNKNOWNS, 1, ensemble, streams.child(3))?)),
        ];
        for (name, published, sampler) in samplers {
            let start = Instant::now();
            let mut chain = Chain::new(Factorisation { ratings: &ratings, priors }, sampler, best.clone())?;
            let draws = if adapts { draws } else { PUBLISHED.1 };
            if adapts {
                chain.burn_in(BURN_IN);
            }
            let (mut means, mut curve, mut step_size) = (vec![0.0; held_out.len()], Vec::new(), 0.0);
            chain.run(draws, |draw| {
                let averaged = curve.len() as f64 + 1.0;
                step_size += draw.step.step_size / draws as f64;
                for (mean, &(movie, user, _)) in means.iter_mut().zip(&held_out) {
                    *mean += (product(draw.theta, movie, user) - *mean) / averaged;
                }
                curve.push((averaged, error(means.iter().copied(), mean, &held_out)));
            });
            let seconds = start.elapsed().as_secs_f64();
            let last = error(held_out.iter().map(|&(m, u, _)| product(chain.state(), m, u)), mean, &held_out);
            let found = curve.last().map_or(f64::NAN, |point| point.1);
            let row = [
                if adapts { format!("{name}, adapted") } else { name.to_owned() },
                four(found),
                four(last),
                format!("{step_size:.5}"),
                format!("{:.2}", chain.statistics().acceptance()),
                format!("{seconds:.1}"),
                published.to_owned(),
            ];
            table.push(row.to_vec());
            if adapts {
                curves.push((name.to_owned(), curve));
            }
        }
    }
    let mut report = Report::new("pmf", "Probabilistic matrix factorisation: MovieLens 1M");
    report.say(&format!(
        "{} ratings to learn from and {} to be predicted, less the mean of the former; {FACTORS} factors. MAP is the \
         demonstration of Salakhutdinov and Mnih (2008), in the same 50 passes. The samplers draw from the posterior with \
         precision {PRECISION} of a rating and priors as wide as the factors that MAP finds (precisions {:.2} of movies and \
         {:.2} of users), from MAP on, with ten leaps: {} draws with the paper's step, and {draws} with a step that \
         adapted over {BURN_IN} draws before, to an acceptance of 0.8. Predictions are averaged over the draws and cut off \
         at 1 and 5.",
        ratings.len(),
        held_out.len(),
        priors[0],
        priors[1],
        PUBLISHED.1,
    ));
    report.table(
        &["method", "RMSE", "of the last draw", "step", "acceptance", "seconds", "paper: RMSE, seconds"],
        &table,
    );
    plot("pmf", "MovieLens 1M, mean prediction", ["draw", "RMSE"], &curves)?;
    report.save()
}
