/**
 * Options of the program `denoise`, by name; options that are not given keep their default. A `seed` above 2^53 is rounded,
 * unless it is a `bigint`: a `number` is exact up to there only. There is no `threads`, as the package uses one thread, no
 * `no_dither`, as samples are floats, and no `noise_from`: pass `noise` to {@link Denoiser.denoise}.
 */
export interface Options {
  /**
   * Choose between quality and speed. Default: normal. fast takes about a third of the time at sample rates up to 16
   * kHz, two thirds at higher rates: a smaller speech-presence network, fewer sweeps of expectation maximisation, no
   * Gibbs sweeps. The seed then has no effect.
   */
  quality?: "normal" | "fast";
  /**
   * Set the use of the output. Default: listening. transcription sets mix to 0.8, unless that is given. Except in live
   * denoising and with channels array, it leaves speech with little noise unchanged. Recognisers then make fewer errors
   * than on the input up to 10 dB of SNR, and as many above 20 dB.
   */
  purpose?: "listening" | "transcription";
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
   * input, exactly up to 24 bits.
   */
  mix?: number;
  /** Reduce late reverberation, 0 (off) to 1 (full). Range: 0 to 1. Default: 0. Start with 0.5. */
  dereverb?: number;
  /**
   * Restore clipped samples; the output is 6 dB softer. Peaks that were cut off are estimated from the samples around
   * them, up to twice as high. The lower level leaves room for them.
   */
  declip?: boolean;
  /**
   * Couple or separate channels, or join microphones. Default: auto. auto applies one gain to all channels, and
   * denoises each channel alone from where they hold different sounds, as with a microphone for each speaker; shared
   * applies one gain throughout, which keeps the stereo image; separate denoises each channel alone throughout; array
   * treats the 2 to 16 channels as microphones in one scene: it also uses the direction of sounds, and returns the
   * voice in each channel.
   */
  channels?: "auto" | "shared" | "separate" | "array";
  /**
   * Seed the random numbers. Range: 0 to 18446744073709551615. Default: 0. The same seed gives the same output, on any
   * number of threads. It drives sampling.
   */
  seed?: number | bigint;
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
   * 1.2. Of the options of the denoiser it takes only model, seed, mix and channels.
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
   * Set the number of expectation-maximisation sweeps. Range: 0 to 10000. Default: 8 (fast: 2); without the
   * speech-presence network 18 (fast: 12). Above 16 kHz at least 12. They precede the Gibbs sweeps; without those, 1 is
   * the least.
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

/** Samples at full scale 1: one channel, or one array per channel. */
export type Samples = Float32Array | Float32Array[];

/** Completed samples. */
export interface SessionOutput {
  /** The result, one array per channel. */
  speech: Float32Array[];
  /** The recording minus the result. */
  residual: Float32Array[];
}

export interface Denoised extends SessionOutput {
  /** Statistics, as in the report of `denoise --stats`. */
  stats: Record<string, unknown>;
  /** Uncertainty of the gain, if `gainStd` was requested. */
  gainStd?: Deviation;
  /** Where there is speech, if `speechTrack` was requested; one track, or one per channel if these are separate. */
  speechTrack?: SpeechTrack[];
}

/**
 * Uncertainty of the gain: its standard deviation over the posterior draws, 0 to 0.5. It is that of the model's gain, before the
 * speech-presence network counts; above 8 kHz it is 0.
 */
export interface Deviation {
  /**
   * Frame by frame, `bins` numbers each; one array, or one per channel if these are separate. Without draws (`quality` fast)
   * it is empty.
   */
  values: Float32Array[];
  /** Number of bins of a frame. */
  bins: number;
  /** Distance between bins, Hz; the first is at 0 Hz. */
  bin_hertz: number;
  /** Distance between frames, s; the first ends that long after the start of the recording. */
  frame_seconds: number;
}

/** Where there is speech. */
export interface SpeechTrack {
  /** Probability of speech, 0 to 1, for every 10 ms. */
  probability: Float32Array;
  /** Sections with speech, in order; pauses of up to 0.3 s do not end one. */
  segments: SpeechSegment[];
}

/** A section with speech. */
export interface SpeechSegment {
  /** Start, s from the start of the recording. */
  start_seconds: number;
  /** End, s. */
  end_seconds: number;
  /** Level of the speech, dBFS. */
  level_dbfs: number;
  /** Ratio of speech to noise, dB, at most 100. */
  snr_db: number;
}

/** Controls of a {@link LiveNode} or a {@link Live}. Values out of range are clamped; changes are smoothed. */
export interface LiveControls {
  /** Exponent applied to the gain, 0 to 2: 0 passes the input unchanged, 2 doubles the attenuation in dB. Default 1. */
  gain_exponent?: number;
  /** Minimum gain, -100 to 0 dB. Default: that of `strength`. */
  floor_db?: number;
  /** Fraction of the denoised signal in the output, 0 to 1; the rest is the delayed input. Default: that of `purpose`. */
  mix?: number;
  /** Pass the delayed input unchanged. */
  bypass?: boolean;
  /** Probability of speech, 0 to 1, from which on there is speech; the sound does not depend on it. Default 0.5. */
  voice_threshold?: number;
  /** Hang-over: time that the probability is below the threshold before speech has ended, 0 to 10 s. Default 0.3. */
  voice_hang_over_seconds?: number;
}

/** Initial controls, which must be in range, and fixed parameters. */
export interface LiveOptions
  extends LiveControls,
    Pick<Options, "purpose" | "strength" | "no_neural" | "alpha_speech" | "alpha_noise" | "model"> {
  /** Delay, 4 to 64 ms. Default 16. A shorter delay costs more work and some quality. */
  latency?: number;
  /** Number of channels, which share one gain. Default 1. */
  channels?: number;
  /** Bytes of the module, decompressed, if it is not beside this file. */
  source?: ArrayBuffer | Uint8Array;
  /** Address of `alphamf/worklet.js`, if it is not beside this file. */
  worklet?: string | URL;
}

/** Levels, smoothed over 0.1 s, and the probability of speech. */
export interface LiveMeters {
  /** Noise level, dBFS, at least -120. */
  noise_dbfs: number;
  /** Speech level, dBFS, at least -120. */
  speech_dbfs: number;
  /** Output level relative to the input, before mixing, dB. */
  gain_db: number;
  /** Probability of speech in the last frame, 0 to 1. */
  speech_probability: number;
}

/** Meters of a {@link LiveNode}. */
export interface LiveNodeMeters extends LiveMeters {
  /** Fraction of its time that the audio thread spent here; above 1, audio drops out. */
  load: number;
}

/** Start or end of speech. */
export interface VoiceEvent {
  /** Whether speech starts; otherwise it has ended. */
  speaking: boolean;
  /** Time in the output, s, as the context's `currentTime`. An end is late by the hang-over. */
  time: number;
}

/** Start or end of speech of a {@link Live}. */
export interface LiveVoiceEvent {
  /** Whether speech starts; otherwise it has ended. */
  speaking: boolean;
  /** Position in the output, samples per channel since the start or the last reset. An end is late by the hang-over. */
  sample: number;
}

export interface LiveNodeEventMap extends AudioWorkletNodeEventMap {
  /** About ten times a second. */
  meters: CustomEvent<LiveNodeMeters>;
  /** Speech starts or has ended. */
  voice: CustomEvent<VoiceEvent>;
}

/** Denoises its input, and dispatches the events of {@link LiveNodeEventMap}. */
export interface LiveNode extends AudioWorkletNode {
  addEventListener<K extends keyof LiveNodeEventMap>(
    type: K,
    listener: (this: LiveNode, event: LiveNodeEventMap[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
  removeEventListener<K extends keyof LiveNodeEventMap>(
    type: K,
    listener: (this: LiveNode, event: LiveNodeEventMap[K]) => void,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | EventListenerOptions): void;
  /** Delay, samples. */
  readonly latency: number;
  readonly controls: Required<LiveControls>;
  /** The most recent meters. */
  readonly meters?: LiveNodeMeters;
  /** Whether there is speech. */
  readonly speaking: boolean;
  /** Sets controls; those not named keep their value. */
  set(controls: LiveControls): void;
  /**
   * Estimates the noise from the next `seconds` of input, which must hold no speech; `Infinity` continues indefinitely, and 0
   * ends it. The denoised signal is attenuated to the minimum gain meanwhile. Throws below 0.
   */
  learnNoise(seconds: number): void;
  /** Clears all state but the controls. */
  reset(): void;
  /** Disconnects the node and frees its memory. */
  close(): void;
}

/**
 * Creates a causal denoiser for a context of 8 to 192 kHz, with one input and one output. Rejects values out of range.
 * The first node of a context compiles the module on the audio thread, which interrupts audio that is playing; later nodes
 * with the same options, and without `model`, start at once.
 */
export function createLiveNode(context: BaseAudioContext, options?: LiveOptions): Promise<LiveNode>;

/** Address of the module for this browser: with SIMD and compressed, or a plain one, which is slower. */
export function moduleAddress(): URL;

/** Loads the module, by default from beside this file; the other functions call it themselves. */
export function initialize(source?: URL | string | Request | Response | BufferSource | WebAssembly.Module): Promise<unknown>;

/** All settings that options stand for, by stage, such as `settings.gain.floor_db`. Rejects values out of range. */
export function settings(options?: Omit<Options, "model">): Promise<Record<string, unknown>>;

/** Of errors: what is invalid; "cancelled" and "other" are further failures. Errors of a browser's own have none. */
export type ErrorKind = "setting" | "input" | "model" | "cancelled" | "other";

/** Options of a recording. */
export interface RecordingOptions {
  /** Section without speech. */
  noise?: Samples;
  /** Receives the completed fraction, 0 to 1. An error that it throws cancels the work and is thrown. */
  onProgress?: (fraction: number) => void;
}

/** Denoises a recording on the calling thread; a page calls it in a worker. Rejects values out of range. */
export function denoise(samples: Float32Array, sampleRate: number, options?: Options & RecordingOptions): Promise<Float32Array>;
export function denoise(samples: Float32Array[], sampleRate: number, options?: Options & RecordingOptions): Promise<Float32Array[]>;
export function denoise(samples: Samples, sampleRate: number, options?: Options & RecordingOptions): Promise<Samples>;

/** Denoiser with its precomputed tables, for several recordings. */
export class Denoiser {
  private constructor();
  static create(options?: Options): Promise<Denoiser>;
  /**
   * Denoises a recording. `gainStd` and `speechTrack` request the members of {@link Denoised} of these names.
   */
  denoise(samples: Samples, sampleRate: number, more?: { gainStd?: boolean; speechTrack?: boolean } & RecordingOptions): Denoised;
  /**
   * Starts a recording of any length that arrives in chunks. With `gainStd`, {@link Stream.takeGainStd} returns the
   * uncertainty of the gain; with `speechTrack`, {@link Stream.takeSpeechTrack} returns where there is speech.
   */
  stream(sampleRate: number, channels?: number, more?: { gainStd?: boolean; speechTrack?: boolean; noise?: Samples }): Stream;
  /** Creates a causal denoiser for real-time audio outside of Web Audio: initial controls, and a delay of 4 to 64 ms, by default 16. */
  live(sampleRate: number, channels?: number, more?: LiveControls & { latency?: number }): Live;
  /** Frees the memory. Later calls throw an error of the kind `"input"`, except that of `free`. */
  free(): void;
}

/** Causal denoiser for real-time audio. The first 64 ms are assumed to be noise. */
export class Live {
  private constructor();
  /** Denoises a block of any length; the output is {@link Live.latency} samples late. Samples that are not finite count as 0. */
  process(samples: Float32Array): Float32Array;
  process(samples: Float32Array[]): Float32Array[];
  process(samples: Samples): Samples;
  /** Sets controls; those not named keep their value. */
  set(controls: LiveControls): void;
  readonly controls: Required<LiveControls>;
  readonly meters: LiveMeters;
  /** Whether there is speech. */
  readonly speaking: boolean;
  /** Delay, samples. */
  readonly latency: number;
  /** Starts and ends of speech since the last call, in their order; of more than 4096, the last. */
  events(): LiveVoiceEvent[];
  /**
   * Estimates the noise from the next `seconds` of input, which must hold no speech; `Infinity` continues indefinitely, and 0
   * ends it. The denoised signal is attenuated to the minimum gain meanwhile. Throws below 0.
   */
  learnNoise(seconds: number): void;
  /** Clears all state but the controls. */
  reset(): void;
  /** Frees the memory. Later calls throw an error of the kind `"input"`, except that of `free`. */
  free(): void;
}

export class Stream {
  private constructor();
  /**
   * Takes the next samples and returns those completed; `onProgress` receives the completed seconds. An error that it throws
   * cancels the stream and is thrown. It cannot use the stream, which is at work: that throws an error of the kind `"input"`.
   */
  push(samples: Samples, onProgress?: (seconds: number) => void): SessionOutput;
  /** Ends the recording and returns the remaining samples. */
  finish(onProgress?: (seconds: number) => void): SessionOutput;
  /** Uncertainty of the gain, of the frames completed since the last call, if `gainStd` was requested. */
  takeGainStd(): Deviation;
  /**
   * Where there is speech, of the slots completed and the sections ended since the last call, if `speechTrack` was
   * requested.
   */
  takeSpeechTrack(): SpeechTrack[];
  /** Statistics so far. */
  readonly stats: Record<string, unknown>;
  /** Maximum number of samples per channel held back after a push. */
  readonly latency: number;
  /** Frees the memory. Later calls throw an error of the kind `"input"`, except that of `free`. */
  free(): void;
}
