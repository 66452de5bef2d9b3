/** Options of the program `denoise`, by name; options that are not given keep their default. */
export interface Options {
  /**
   * Choose between quality and speed. Default: normal. fast takes about half the time: fewer sweeps of expectation
   * maximisation, no Gibbs sweeps. The seed then affects the dither alone.
   */
  quality?: "normal" | "fast";
  /**
   * Set the noise reduction. Default: normal. gentle removes 12 dB at most, normal 45 dB, strong 70 dB. With no_neural,
   * normal removes about 26 dB, more where noise is louder than speech and less where it is barely audible. Excludes
   * floor_db.
   */
  strength?: "gentle" | "normal" | "strong";
  /** Set the minimum gain of any frequency, in dB. Range: -100 to 0. Default: that of strength, which it replaces. */
  floor_db?: number;
  /**
   * Set the fraction of denoised signal in the output. Range: 0 to 1. Default: 1. The rest is the input; 0 returns the
   * input.
   */
  mix?: number;
  /** Reduce late reverberation, 0 (off) to 1 (full). Range: 0 to 1. Default: 0. Start with 0.5. */
  dereverb?: number;
  /**
   * Couple or separate channels. Default: shared. shared applies one gain to all channels and keeps the stereo image;
   * separate denoises each channel alone.
   */
  channels?: "shared" | "separate";
  /**
   * Seed the random numbers. Range: 0 to 18446744073709551615. Default: 0. The same seed gives the same output, on any
   * number of threads. It drives sampling and dither; with quality fast, dither alone.
   */
  seed?: number;
  /**
   * Disable the speech-presence network. The gain is then the posterior-mean Wiener gain alone, with slowly varying
   * noise.
   */
  no_neural?: boolean;
  /**
   * Run a published method with its own settings. published is Simsekli et al. (2016), section 4.2: 2500 Gibbs sweeps,
   * slow. It departs from the paper: factors start at the level of the recording, a minibatch is a tenth of the bins
   * across frames, each frame has an L-BFGS memory of its own, the drift of a step is limited, the gain is averaged
   * over the impulse variables, and priors and step size were chosen here. It expects a dictionary trained with alpha
   * 1.2. Excludes all options but seed, mix, channels and no_dither.
   */
  method?: "published";
  /**
   * Set the characteristic exponent of speech. Range: 0.2 to 2. Default: that of the dictionary, whose spectra were
   * trained with it.
   */
  alpha_speech?: number;
  /** Set the characteristic exponent of noise. Range: 0.2 to 2. Default: 1.9. */
  alpha_noise?: number;
  /**
   * Model noise with N fixed spectra. Range: 1 to 64. Default: one drifting spectrum, which it replaces. Disables the
   * speech-presence network.
   */
  noise_rank?: number;
  /** Choose the sampler of activations and noise spectra. Default: hamcmc. Needs Gibbs sweeps. */
  sampler?: "sgld" | "psgld" | "sgrld" | "hamcmc" | "sghmc" | "sgnht" | "sgrhmc" | "hmc" | "mh-bfgs" | "hmc-bfgs" | "qnhmc" | "nuts" | "nmc";
  /**
   * Set the number of Gibbs sweeps. Range: 0 to 1000000. Default: 8; with quality fast, 0. Without sweeps nothing is
   * sampled.
   */
  iterations?: number;
  /**
   * Discard the first N Gibbs sweeps. Range: 0 to one less than iterations. Default: 2; with iterations, half of them.
   * Needs Gibbs sweeps.
   */
  burn_in?: number;
  /**
   * Set the number of expectation-maximisation sweeps. Range: 0 to 10000. Default: 18; with quality fast, 12. They
   * precede the Gibbs sweeps; without those, 1 is the least.
   */
  em_iterations?: number;
  /**
   * Set the step size of the sampler. Range: above 0 to 1000000. Default: the sampler's own. The sampler nmc has none.
   * Needs Gibbs sweeps.
   */
  step_size?: number;
  /**
   * Set the fraction of bins in each gradient. Range: above 0 to 1. Default: 1. Samplers that accept or reject take 1
   * alone: hmc, mh-bfgs, hmc-bfgs, qnhmc, nuts, nmc. Needs Gibbs sweeps.
   */
  minibatch?: number;
  /**
   * Choose how the sampler keeps factors positive. Default: log. log samples their logarithms; mirrored reflects draws
   * at zero, as in the paper. The sampler nmc takes log alone. Needs Gibbs sweeps.
   */
  positivity?: "log" | "mirrored";
  /**
   * Choose how impulse variables are treated. Default: integrated. integrated averages over them exactly; sampled draws
   * them by Metropolis steps, as in the paper. Needs Gibbs sweeps.
   */
  impulses?: "integrated" | "sampled";
  /** Bytes of a dictionary file; replaces the built-in dictionary. */
  model?: Uint8Array;
}

/** Samples, full scale 1: of one channel, or an array for each. */
export type Samples = Float32Array | Float32Array[];

export interface Portion {
  /** The result, an array for each channel. */
  voice: Float32Array[];
  /** The recording minus the result. */
  residual: Float32Array[];
}

export interface Denoised extends Portion {
  /** What `denoise --stats` tells of a file's samples. */
  stats: Record<string, unknown>;
  /**
   * How sure the gain is, if it was asked for: the standard deviation over its posterior draws, 0 to 0.5, frame by
   * frame of round(0.064 * sampleRate) / 2 + 1 bins, 16 ms apart; of all channels, or of each.
   */
  deviation?: Float32Array[];
}

/** What may change while a {@link LiveNode} runs; out of its range, the nearest in it. Changes are faded in. */
export interface LiveControls {
  /** The power that gains are raised to, 0 to 2: 0 leaves all as it is, 2 takes twice as many dB out. 1 by default. */
  strength?: number;
  /** The least gain, -100 to 0 dB: what is left of the noise. -45 by default. */
  floor_db?: number;
  /** How much of the result is the voice, 0 to 1; the rest is the sound as it came, as late. 1 by default. */
  mix?: number;
  /** Whether the sound passes as it came, as late as the voice. */
  bypass?: boolean;
}

/** The controls to start with, of which none may be out of range, and what stays as it is. */
export interface LiveOptions extends LiveControls {
  /** How late the voice comes out, 4 to 32 ms, 16 by default: the shorter, the more work, and the less is known. */
  latency?: number;
  /** 1 by default. All get one gain. */
  channels?: number;
  /** The bytes of a dictionary's file in place of the one that is built in. */
  model?: Uint8Array;
  no_neural?: boolean;
  /** The bytes of the module, unpacked, for who does not keep it beside this file. */
  source?: ArrayBuffer | Uint8Array;
}

/** What is heard, over the last tenth of a second. */
export interface LiveMeters {
  /** Level of the noise against full scale, dB; -120 at least. */
  noise_dbfs: number;
  /** Level of the voice. */
  speech_dbfs: number;
  /** Level of what comes out against what came in, before they are mixed, dB. */
  gain_db: number;
  /** The share of its time that the thread of audio was busy here: to be below 1. */
  load: number;
}

/** Takes noise out of what is connected to it. Dispatches a `meters` event, a `CustomEvent<LiveMeters>`, about ten times a second. */
export interface LiveNode extends AudioWorkletNode {
  /** Samples by which what comes out is late: 16 ms, or what was asked for. */
  readonly latency: number;
  readonly controls: Required<LiveControls>;
  /** Those that were told last. */
  readonly meters?: LiveMeters;
  /** Changes controls; those that are not named stay. */
  set(controls: LiveControls): void;
  /** Takes all that comes in the next seconds for noise. */
  learnNoise(seconds: number): void;
  /** Forgets all that has come. */
  reset(): void;
  /** Ends it and gives its memory back. */
  close(): void;
}

/**
 * Sound as it comes: a node for a context of any rate from 8 to 192 kHz, one in and one out. Rejects what is out of range.
 * The module is compiled on the thread of audio: what that plays meanwhile stutters.
 */
export function createLiveNode(context: BaseAudioContext, options?: LiveOptions): Promise<LiveNode>;

/** Where the module lies that this browser runs: one with vector instructions, packed, or a plain one, which takes longer. */
export function moduleAddress(): URL;

/** Loads the module, from where it lies beside this file if no other place or module is given; done by itself. */
export function initialize(source?: URL | string | Request | Response | BufferSource | WebAssembly.Module): Promise<unknown>;

/** Takes the noise out of a recording, on this thread: for a page, call it in a worker. Rejects what is out of range. */
export function denoise(samples: Float32Array, sampleRate: number, options?: Options): Promise<Float32Array>;
export function denoise(samples: Float32Array[], sampleRate: number, options?: Options): Promise<Float32Array[]>;

/** A denoiser with its tables, for several recordings. */
export class Denoiser {
  private constructor();
  static create(options?: Options): Promise<Denoiser>;
  /** `noise` is a stretch that holds nothing else; `onProgress` is told the share that is done, and ends it by throwing. */
  denoise(
    samples: Samples,
    sampleRate: number,
    more?: { deviation?: boolean; noise?: Samples; onProgress?: (share: number) => void },
  ): Denoised;
  /** A recording of any length that comes in chunks. */
  stream(sampleRate: number, channels?: number, more?: { deviation?: boolean; noise?: Samples }): Stream;
  /** Gives its memory back. */
  free(): void;
}

export class Stream {
  private constructor();
  /** Takes the next samples and gives those that are done, fewer or more; `onProgress` is told the seconds. */
  push(samples: Samples, onProgress?: (seconds: number) => void): Portion;
  /** Ends the recording: the samples still to come. */
  finish(onProgress?: (seconds: number) => void): Portion;
  /** Deviations as those of {@link Denoised} since they were last asked for. */
  takeDeviation(): Float32Array[];
  /** What was found so far. */
  readonly stats: Record<string, unknown>;
  /** The most samples per channel that may have gone in and not come out yet. */
  readonly latency: number;
  /** Gives its memory back. */
  free(): void;
}
