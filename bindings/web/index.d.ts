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
  sampler?: string;
  iterations?: number;
  burn_in?: number;
  warm_start?: number;
  step_size?: number;
  minibatch?: number;
  positivity?: "log" | "mirrored";
  impulses?: "integrated" | "sampled";
  alpha_speech?: number;
  alpha_noise?: number;
  noise_rank?: number;
  /** The bytes of a refiner's file in place of the one that is built in, or none. */
  refiner?: Uint8Array | "none";
  /** The bytes of a dictionary's file in place of the one that is built in. */
  model?: Uint8Array;
  no_listener?: boolean;
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
