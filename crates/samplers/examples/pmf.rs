//! Probabilistic matrix factorisation of movie ratings: `quasi-newton-hmc` section 5.3, Table 3.
//!
//! `--data DIR` names the folder of `train.csv.gz` and `test.csv.gz`, lines of `movie,user,rating` after a head;
//! MovieLens 1M may not be passed on. `--draws N` takes another number of draws.

mod shared;

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use alphamf_samplers::random::{Stream, Streams};
use alphamf_samplers::{
    Chain, Hmc, HmcBfgs, HmcBfgsSettings, HmcSettings, Minibatch, Qnhmc, QnhmcSettings, Sampler, Target,
};
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use shared::{Outcome, Report, option, plot};

const MOVIES: usize = 3_952;
const USERS: usize = 6_040;
const FACTORS: usize = 10;
/// Where the users' factors begin.
const SPLIT: usize = MOVIES * FACTORS;
const UNKNOWNS: usize = (MOVIES + USERS) * FACTORS;
/// The precision of a rating, as in the demonstration of Salakhutdinov and Mnih (2008).
const PRECISION: f64 = 2.0;
/// Draws that are not averaged.
const BURN_IN: usize = 10;

/// Where the factors of movie and user begin, and the rating.
type Rating = (usize, usize, f64);

fn read(path: &Path) -> Result<Vec<Rating>, Box<dyn Error>> {
    let lines = BufReader::new(flate2::read::GzDecoder::new(File::open(path)?)).lines().skip(1);
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

fn product(theta: &[f64], movie: usize, user: usize) -> f64 {
    let (movie, user) = (&theta[movie..][..FACTORS], &theta[user..][..FACTORS]);
    movie.iter().zip(user).map(|(m, u)| m * u).sum()
}

/// Adds `factor` times the gradient of half the squared error of one rating.
fn add_slope(theta: &[f64], (movie, user, rating): Rating, factor: f64, slope: &mut [f64]) {
    let error = factor * (product(theta, movie, user) - rating);
    for k in 0..FACTORS {
        slope[movie + k] += error * theta[user + k];
        slope[user + k] += error * theta[movie + k];
    }
}

/// `PRECISION / 2 sum (m'u - rating)^2`, and Gaussian priors of the factors of movies and users.
struct Factorisation<'a> {
    ratings: &'a [Rating],
    /// Prior precisions of the factors of movies and of users.
    priors: [f64; 2],
}

impl Factorisation<'_> {
    fn prior(&self, index: usize) -> f64 {
        self.priors[usize::from(index >= SPLIT)]
    }
}

impl Target<f64> for Factorisation<'_> {
    fn dimension(&self) -> usize {
        UNKNOWNS
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        for (index, (slope, theta)) in gradient.iter_mut().zip(theta).enumerate() {
            *slope = self.prior(index) * theta;
        }
        self.ratings.iter().for_each(|&rating| add_slope(theta, rating, PRECISION, gradient));
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        let errors =
            self.ratings.iter().map(|&(movie, user, rating)| (product(theta, movie, user) - rating).powi(2));
        let errors: f64 = errors.sum();
        let prior: f64 =
            theta.iter().enumerate().map(|(index, theta)| self.prior(index) * theta * theta).sum();
        potential[0] = (PRECISION * errors + prior) / 2.0;
    }
}

/// Root mean square error of predictions, cut off at the ends of the scale.
fn error(predictions: impl Iterator<Item = f64>, mean: f64, held_out: &[Rating]) -> f64 {
    let errors = predictions
        .zip(held_out)
        .map(|(found, rating)| ((found + mean).clamp(1.0, 5.0) - mean - rating.2).powi(2));
    (errors.sum::<f64>() / held_out.len() as f64).sqrt()
}

/// The demonstration's: 50 passes of gradient descent with momentum 0.8 over batches of a ninth, each rating with a
/// hundredth of its factors' squares.
fn maximise(ratings: &mut [Rating], stream: &mut Stream) -> Vec<f64> {
    let mut theta: Vec<f64> =
        (0..UNKNOWNS).map(|_| -> f64 { StandardNormal.sample(stream) }).map(|x| 0.1 * x).collect();
    let (mut slope, mut momentum) = (vec![0.0; UNKNOWNS], vec![0.0; UNKNOWNS]);
    for _ in 0..50 {
        ratings.shuffle(stream);
        for batch in ratings.chunks(ratings.len().div_ceil(9)) {
            slope.fill(0.0);
            for &rating in batch {
                add_slope(&theta, rating, 2.0, &mut slope);
                for start in [rating.0, rating.1] {
                    (start..start + FACTORS).for_each(|index| slope[index] += 0.01 * theta[index]);
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
    let folder = option("--data").ok_or("--data DIR: the folder of the ratings")?;
    let draws = match option("--draws") {
        Some(draws) => draws.to_string_lossy().parse()?,
        None => 150,
    };
    let (mut ratings, mut held_out) =
        (read(&folder.join("train.csv.gz"))?, read(&folder.join("test.csv.gz"))?);
    let mean = ratings.iter().map(|rating| rating.2).sum::<f64>() / ratings.len() as f64;
    ratings.iter_mut().chain(&mut held_out).for_each(|rating| rating.2 -= mean);
    let streams = Streams::new(1);
    let start = Instant::now();
    let best = maximise(&mut ratings, &mut streams.stream(0));
    let maximising = start.elapsed().as_secs_f64();
    // Neighbours in memory are met one after the other.
    ratings.sort_by_key(|&(movie, user, _)| (user, movie));
    let found = error(held_out.iter().map(|&(movie, user, _)| product(&best, movie, user)), mean, &held_out);
    // The priors that the factors found are drawn from.
    let priors = [&best[..SPLIT], &best[SPLIT..]]
        .map(|side| side.len() as f64 / side.iter().map(|x| x * x).sum::<f64>());

    let hmc = HmcSettings { step_size: 0.01, leaps: 10, ..HmcSettings::default() };
    let quasi_newton = QnhmcSettings { hmc, keep_learning: true, ..QnhmcSettings::default() };
    let ensemble = HmcBfgsSettings { hmc, ..HmcBfgsSettings::default() };
    let samplers: [(&str, &str, Box<dyn Sampler<f64>>); 3] = [
        ("HMC", ".8607, 202.5", Box::new(Hmc::new(UNKNOWNS, 1, hmc, streams.child(1))?)),
        ("QNHMC", ".8628, 108.3", Box::new(Qnhmc::new(UNKNOWNS, 1, quasi_newton, streams.child(2))?)),
        ("HMC-BFGS", ".8618, 179.2", Box::new(HmcBfgs::new(UNKNOWNS, 1, ensemble, streams.child(3))?)),
    ];
    let four = |x: f64| format!("{x:.4}");
    let maximised =
        ["MAP".into(), four(found), "".into(), format!("{maximising:.0}"), "".into(), ".8701, 27.7".into()];
    let (mut table, mut curves) = (vec![maximised.to_vec()], Vec::new());
    for (name, published, sampler) in samplers {
        let start = Instant::now();
        let mut chain = Chain::new(Factorisation { ratings: &ratings, priors }, sampler, best.clone())?;
        let (mut means, mut curve) = (vec![0.0; held_out.len()], Vec::new());
        chain.run(draws, |draw| {
            let averaged = draw.index.saturating_sub(BURN_IN) as f64 + 1.0;
            for (mean, &(movie, user, _)) in means.iter_mut().zip(&held_out) {
                *mean += (product(draw.theta, movie, user) - *mean) / averaged;
            }
            curve.push((draw.index as f64 + 1.0, error(means.iter().copied(), mean, &held_out)));
        });
        let seconds = start.elapsed().as_secs_f64();
        let last = error(held_out.iter().map(|&(m, u, _)| product(chain.state(), m, u)), mean, &held_out);
        let found = curve.last().map_or(f64::NAN, |point| point.1);
        let acceptance = format!("{:.2}", chain.statistics().acceptance());
        let row =
            [name.into(), four(found), four(last), format!("{seconds:.0}"), acceptance, published.to_owned()];
        table.push(row.to_vec());
        curves.push((name.to_owned(), curve));
    }
    let mut report = Report::new("pmf", "Probabilistic matrix factorisation: MovieLens 1M");
    report.say(&format!(
        "{} ratings to learn from and {} to be predicted, less the mean of the former; {FACTORS} factors. MAP is the \
         demonstration of Salakhutdinov and Mnih (2008), in the same 50 passes. The samplers draw from the posterior with \
         precision {PRECISION} of a rating and priors as wide as the factors that MAP finds (precisions {:.2} of movies and \
         {:.2} of users), from MAP on: step 0.01, ten leaps, {draws} draws of which the first {BURN_IN} are left out. \
         Predictions are averaged over the draws and cut off at 1 and 5.",
        ratings.len(),
        held_out.len(),
        priors[0],
        priors[1],
    ));
    report.table(
        &["method", "RMSE", "of the last draw", "seconds", "acceptance", "paper: RMSE, seconds"],
        &table,
    );
    plot("pmf", "MovieLens 1M, mean prediction", ["draw", "RMSE"], &curves)?;
    report.save()
}
