/** Options of the program `denoise` by their names; what is not given stays at its default. */
export interface Options {
  /** How much time to spend. */
  quality?: "fast" | "normal";
  /** A method as it was published, in place of all but dictionary and seed. */
  method?: "published";
  /** How much of the noise to take out. */
  strength?: "gentle" | "normal" | "strong";
  /** The least gain of any part of the spectrum, -100 to 0 dB, in place of a strength. */
  floor_db?: number;
  /** The share of what rings on of the voice in a room that is taken out, too, 0 to 1. */
  dereverb?: number;
  sampler?: string;
  iterations?: number;
  burn_in?: number;
  em_iterations?: number;
  step_size?: number;
  minibatch?: number;
  positivity?: "log" | "mirrored";
  impulses?: "integrated" | "sampled";
  alpha_speech?: number;
  alpha_noise?: number;
  noise_rank?: number;
  /** The bytes of a dictionary's file in place of the one that is built in. */
  model?: Uint8Array;
  no_neural?: boolean;
  /** The same seed gives the same samples. */
  seed?: number;
  /** How much of the result is the denoised recording, 0 to 1. */
  mix?: number;
  /** One gain for all channels, so that the stereo image stays, or each by itself. */
  channels?: "shared" | "separate";
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
