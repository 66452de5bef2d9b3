// Microphone access and recording.

/** The microphone's signal without the browser's own processing. */
export async function microphone() {
  if (!navigator.mediaDevices) throw new Error("browsers allow the microphone only over https, or at http://localhost");
  const asIs = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  return navigator.mediaDevices.getUserMedia({ audio: asIs });
}

/** Records a stream; `finish()` ends it and returns `channels` and `sampleRate`. `onSeconds` receives its length. */
export async function record(stream, onSeconds) {
  const context = new AudioContext();
  const end = async () => {
    for (const track of stream.getTracks()) track.stop();
    await context.close();
  };
  try {
    await context.resume();
    await context.audioWorklet.addModule(new URL("./recorder.js", import.meta.url));
    const source = context.createMediaStreamSource(stream);
    const options = { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" };
    const recorder = new AudioWorkletNode(context, "recorder", options);
    const parts = [];
    let length = 0;
    let last;
    const ended = new Promise((resolve) => (last = resolve));
    recorder.port.onmessage = ({ data }) => {
      if (!data) return last();
      parts.push(data);
      length += data.length;
      onSeconds(length / context.sampleRate);
    };
    source.connect(recorder);
    return {
      async finish() {
        recorder.port.postMessage("finish");
        await ended;
        const { sampleRate } = context;
        await end();
        const samples = new Float32Array(length);
        let start = 0;
        for (const part of parts) {
          samples.set(part, start);
          start += part.length;
        }
        return { channels: [samples], sampleRate };
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}
