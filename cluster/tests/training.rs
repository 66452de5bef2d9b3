//! A dictionary or refiner that ranks learn together is the one that a single rank learns, and so is one that goes on from
//! a checkpoint. Ranks are threads here, so that this runs without MPI.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread;

use alphamf::learning::{
    Checkpoints, Corpus, RefinerSettings, RefiningError, Simulator, TrainingError, TrainingSettings,
    learn_refiner, learn_refiner_together,
};
use alphamf::model::Dictionary;
use alphamf::random::SeedTree;
use alphamf::signal::{SampleFormat, Signal};
use alphamf_samplers::distributed::{Communicator, Local};
use rand_distr::{Distribution, StandardNormal};

const RATE: u32 = 8_000;

/// Speech-like only in that every recording has a colour and a length of its own.
fn recordings(count: usize) -> Vec<Signal> {
    let recording = |index: usize| {
        let mut stream = SeedTree::new(9).rng(index as u64);
        let mut last = 0.0;
        let samples = (0..RATE as usize / 2 * (1 + index % 3)).map(|_| {
            let noise: f32 = StandardNormal.sample(&mut stream);
            last = 0.1 * noise + 0.3 * index as f32 / count as f32 * last;
            last
        });
        Signal::new(RATE, SampleFormat::Float32, vec![samples.collect()]).unwrap()
    };
    (0..count).map(recording).collect()
}

fn corpus(speech: &[Signal]) -> Corpus {
    let settings = TrainingSettings { rank: 5, iterations: 6, ..TrainingSettings::default() };
    let mut corpus = Corpus::new(RATE, settings).unwrap();
    speech.iter().for_each(|speech| corpus.add(speech).unwrap());
    corpus
}

/// What each of several ranks learns from its share of the recordings, in so many sweeps of six.
fn learn_on<K: Checkpoints + Clone + Send>(
    ranks: usize,
    speech: &[Signal],
    checkpoints: &K,
    sweeps: usize,
) -> Vec<Result<Vec<u8>, TrainingError>> {
    thread::scope(|scope| {
        let learn = |mut local: Local| {
            let rank = local.rank();
            // Shares of unlike size, one of them empty where there are many ranks.
            let bound = |rank: usize| speech.len() * rank * rank / (ranks * ranks);
            let corpus = corpus(&speech[bound(rank)..bound(rank + 1)]);
            let mut checkpoints = checkpoints.clone();
            scope.spawn(move || {
                let mut watch = |share: f64| {
                    let cancelled = share * 6.0 > sweeps as f64 - 0.5 && sweeps < 6;
                    if cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let dictionary = corpus.learn_together(&mut local, &mut checkpoints, &mut watch)?;
                Ok(dictionary.to_bytes()?)
            })
        };
        let threads: Vec<_> = Local::group(ranks).into_iter().map(learn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn any_number_of_ranks_learns_the_same_dictionary() {
    let speech = recordings(11);
    let alone = corpus(&speech).learn().unwrap().to_bytes().unwrap();
    for ranks in [2, 3, 17] {
        for dictionary in learn_on(ranks, &speech, &(), 6) {
            assert!(dictionary.unwrap() == alone, "{ranks} ranks");
        }
    }
    assert!(corpus(&speech[1..]).learn().unwrap().to_bytes().unwrap() != alone);
}

/// The bytes of parts by their sweep and number.
type Parts = HashMap<(usize, usize), Vec<u8>>;

/// In memory that ranks share, after `every` so many sweeps.
#[derive(Clone, Default)]
struct Kept {
    parts: Arc<Mutex<Parts>>,
    every: usize,
    newest: Option<usize>,
}

impl Checkpoints for Kept {
    fn due(&self, sweeps: usize) -> bool {
        self.every > 0 && sweeps.is_multiple_of(self.every)
    }
    fn save(&mut self, sweeps: usize, part: usize, bytes: &[u8]) -> io::Result<()> {
        self.parts.lock().unwrap().insert((sweeps, part), bytes.to_vec());
        Ok(())
    }
    fn complete(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn newest(&self) -> Option<usize> {
        self.newest
    }
    fn load(&mut self, sweeps: usize, part: usize) -> io::Result<Vec<u8>> {
        self.parts.lock().unwrap().get(&(sweeps, part)).cloned().ok_or(io::ErrorKind::NotFound.into())
    }
}

#[test]
fn learning_goes_on_from_a_checkpoint_with_other_ranks() {
    let speech = recordings(11);
    let alone = corpus(&speech).learn().unwrap().to_bytes().unwrap();
    let kept = Kept { every: 2, ..Kept::default() };
    for stopped in learn_on(3, &speech, &kept, 5) {
        assert!(matches!(stopped, Err(TrainingError::Cancelled(_))));
    }
    let resumed = Kept { newest: Some(4), ..kept };
    for dictionary in learn_on(2, &speech, &resumed, 6) {
        assert!(dictionary.unwrap() == alone);
    }
    // A state of other speech does not fit.
    for refused in learn_on(1, &speech[..4], &resumed, 6) {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("after 4 sweeps") && error.contains("numbers; expected"), "{error}");
    }
    // What is kept is what is used.
    resumed.parts.lock().unwrap().get_mut(&(4, 1)).unwrap()[2] ^= 1;
    assert!(learn_on(2, &speech, &resumed, 6).into_iter().all(|dictionary| dictionary.unwrap() != alone));
}

/// Two rounds of two passes over fifteen recordings: a batch of eight and one of seven.
const REFINER: RefinerSettings = RefinerSettings { channels: 3, rounds: 2, examples: 15, passes: 2, seed: 5 };

/// Simulators of several ranks, with one recording after the other.
fn simulators(ranks: usize) -> Vec<Simulator> {
    let mut simulators = vec![Simulator::new(0.2); ranks];
    for (index, recording) in recordings(3).into_iter().enumerate() {
        let samples = recording.channels()[0].repeat(2);
        let speech = Signal::new(2 * RATE, SampleFormat::Float32, vec![samples]).unwrap();
        simulators[index * ranks / 3].add(&speech).unwrap();
    }
    simulators
}

/// The refiner that each of several ranks learns; none if it is ended after so many passes of four.
fn refine_on<K: Checkpoints + Clone + Send>(
    ranks: usize,
    checkpoints: &K,
    passes: usize,
) -> Vec<Result<Vec<u8>, RefiningError>> {
    let dictionary = &Dictionary::shipped().unwrap();
    thread::scope(|scope| {
        let learn = |(mut local, mut simulator): (Local, Simulator)| {
            let mut checkpoints = checkpoints.clone();
            scope.spawn(move || {
                simulator.gather(&mut local);
                // The first part of a round, one of three, is its simulation.
                let end = (passes / 2 * 3 + passes % 2 + 1) as f64 / 6.0;
                let mut watch = |share: f64| {
                    let cancelled = passes < 4 && share > end - 1e-9;
                    if cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let refiner = learn_refiner_together(
                    &simulator,
                    dictionary,
                    &REFINER,
                    &mut local,
                    &mut checkpoints,
                    &mut watch,
                    &mut |_| (),
                )?;
                Ok(refiner.to_bytes().unwrap())
            })
        };
        let threads: Vec<_> = Local::group(ranks).into_iter().zip(simulators(ranks)).map(learn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn any_number_of_ranks_learns_the_same_refiner() {
    let dictionary = Dictionary::shipped().unwrap();
    let alone = learn_refiner(&simulators(1)[0], &dictionary, &REFINER, &mut (), &mut |_| ());
    let alone = alone.unwrap().to_bytes().unwrap();
    // The last of four ranks has no speech.
    for ranks in [3, 4] {
        for refiner in refine_on(ranks, &(), 4) {
            assert!(refiner.unwrap() == alone, "{ranks} ranks");
        }
    }

    // Ended within a round, on three ranks, and gone on with two.
    let kept = Kept { every: 1, ..Kept::default() };
    for stopped in refine_on(3, &kept, 3) {
        assert!(matches!(stopped, Err(RefiningError::Cancelled(_))));
    }
    assert!(kept.parts.lock().unwrap().keys().all(|&(passes, _)| passes <= 3));
    for newest in [2, 3] {
        let resumed = Kept { newest: Some(newest), ..kept.clone() };
        for refiner in refine_on(2, &resumed, 4) {
            assert!(refiner.unwrap() == alone, "from the state after {newest} passes");
        }
    }
    // What is kept is what is used: the weights, the moments of their slopes and the random numbers.
    for part in 0..3 {
        let changed = Kept {
            newest: Some(3),
            every: 0,
            parts: Arc::new(Mutex::new(kept.parts.lock().unwrap().clone())),
        };
        let mut parts = changed.parts.lock().unwrap();
        let bytes = parts.get_mut(&(3, part)).unwrap();
        match part {
            2 => *bytes = kept.parts.lock().unwrap()[&(2, 2)].clone(),
            1 => bytes.chunks_exact_mut(8).take(99).for_each(|number| number[7] ^= 0x80),
            _ => bytes[2] ^= 1,
        }
        drop(parts);
        assert!(
            refine_on(1, &changed, 4).into_iter().all(|refiner| refiner.unwrap() != alone),
            "part {part}"
        );
    }
    kept.parts.lock().unwrap().insert((3, 0), vec![0; 12]);
    for refused in refine_on(1, &Kept { newest: Some(3), ..kept }, 4) {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("after 3 passes: 3 numbers; expected"), "{error}");
    }
}
