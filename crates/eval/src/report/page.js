'use strict';
// Tables: sorted by a click on a column's name, filtered by text.
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, column) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const rising = head.getAttribute('aria-sort') === 'descending';
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', rising ? 'ascending' : 'descending');
      const rows = [...body.rows].map(row => [value(row, column), row]);
      rows.sort(([a], [b]) => {
        if (a === '' || b === '') return (a === '') - (b === '');
        const [x, y] = [a, b].map(text => text === 'inf' ? Infinity : text === '-inf' ? -Infinity : Number(text));
        const order = x !== x || y !== y ? a.localeCompare(b, undefined, {numeric: true}) : x - y || 0;
        return rising ? order : -order;
      });
      body.append(...rows.map(([, row]) => row));
    };
  });
  const filter = document.querySelector(`input[data-table="${table.id}"]`), shown = filter?.parentElement.nextElementSibling;
  if (filter) filter.oninput = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${body.rows.length}`;
  };
}

// Players: all versions of a recording run in step, one of them audible.
const votes = new Map();
let context, active;
// The version that a key switches to, from 0; those after the ninth have none.
const keyed = ({key, ctrlKey, metaKey, altKey}, count) =>
  /^[1-9]$/.test(key) && Number(key) <= count && !(ctrlKey || metaKey || altKey) ? Number(key) - 1 : undefined;
const element = (kind, text, attributes = {}) => Object.assign(document.createElement(kind), {textContent: text}, attributes);
for (const example of document.querySelectorAll('.example')) {
  const figures = [...example.querySelectorAll('figure')], names = figures.map(figure => figure.dataset.version);
  const play = element('button', 'Play', {type: 'button'});
  const place = element('input', '', {type: 'range', min: 0, max: 1, step: 0.001, value: 0, ariaLabel: 'Position'});
  const time = element('span', '0:00', {className: 'time'});
  const blind = element('input', '', {type: 'checkbox'});
  const vote = element('button', 'This one is best', {type: 'button', hidden: true});
  const result = element('p', '', {className: 'muted', role: 'status'});
  const buttons = names.map((_, index) => element('button', '', {type: 'button', onclick: () => choose(index)}));
  const controls = element('div', '', {className: 'controls'}), choice = element('div', '', {className: 'controls'});
  const label = element('label', ' blind');
  label.prepend(blind);
  controls.append(play, place, time);
  choice.append(...buttons, label, vote);
  example.querySelector('h3').after(controls, choice, result);
  example.classList.add('scripted');
  let order = names.map((_, index) => index), current = 0, sources = [], gains = [], sounds, began = 0, offset = 0, playing = false;
  const length = () => sounds ? Math.max(...sounds.map(sound => sound.duration)) : 0;
  const now = () => playing ? Math.min(offset + context.currentTime - began, length()) : offset;
  const show = () => {
    buttons.forEach((button, index) => {
      button.textContent = blind.checked ? String.fromCharCode(65 + index) : `${index + 1} ${names[index]}`;
      button.setAttribute('aria-pressed', index === current);
    });
    example.classList.toggle('blind', blind.checked);
    vote.hidden = !blind.checked;
    figures.forEach((figure, index) => figure.classList.toggle('current', !blind.checked && index === order[current]));
    play.textContent = playing ? 'Pause' : 'Play';
  };
  const choose = index => {
    current = index;
    gains.forEach((gain, version) => gain.gain.setTargetAtTime(version === order[current] ? 1 : 0, context.currentTime, 0.005));
    show();
  };
  const stop = () => {
    offset = now();
    playing = false;
    sources.forEach(source => { source.onended = null; source.stop(); });
    sources = gains = [];
    show();
  };
  const start = async () => {
    context ??= new AudioContext();
    await context.resume();
    sounds ??= await Promise.all(figures.map(async figure =>
      context.decodeAudioData(await (await fetch(figure.querySelector('audio').src)).arrayBuffer())));
    if (active && active !== stop) active();
    active = () => playing && stop();
    if (offset >= length() - 0.01) offset = 0;
    const at = context.currentTime + 0.02;
    gains = sounds.map((_, version) => {
      const gain = context.createGain();
      gain.gain.value = version === order[current] ? 1 : 0;
      gain.connect(context.destination);
      return gain;
    });
    sources = sounds.map((sound, version) => {
      const source = context.createBufferSource();
      source.buffer = sound;
      source.connect(gains[version]);
      source.start(at, offset);
      return source;
    });
    [began, playing] = [at, true];
    requestAnimationFrame(move);
    show();
  };
  const move = () => {
    const fraction = length() ? Math.max(0, now()) / length() : 0;
    place.value = fraction;
    example.style.setProperty('--at', `${100 * fraction}%`);
    const seconds = Math.max(0, now());
    time.textContent = `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
    if (playing && now() >= length()) stop();
    if (playing) requestAnimationFrame(move);
  };
  const seek = async fraction => {
    const was = playing;
    if (was) stop();
    if (!sounds) { await start(); stop(); }
    offset = fraction * length();
    if (was) await start(); else move();
  };
  play.onclick = () => playing ? stop() : start();
  place.oninput = () => seek(Number(place.value));
  for (const picture of example.querySelectorAll('.picture')) picture.onclick = event => {
    const box = picture.getBoundingClientRect();
    seek((event.clientX - box.left) / box.width);
  };
  blind.onchange = () => {
    order = names.map((_, index) => index);
    if (blind.checked) for (let i = order.length - 1; i > 0; i--) {
      const j = Math.floor(Math.random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    result.textContent = '';
    choose(0);
  };
  vote.onclick = () => {
    const best = names[order[current]];
    votes.set(best, (votes.get(best) ?? 0) + 1);
    const key = order.map((version, index) => `${String.fromCharCode(65 + index)} is ${names[version]}`).join(', ');
    const all = [...votes].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${count}`).join(', ');
    result.textContent = `You chose ${best}: ${key}. Your choices on this page: ${all}.`;
  };
  example.tabIndex = 0;
  example.onkeydown = event => {
    if (event.target.matches('input[type=range]')) return;
    if (event.key === ' ' && event.target === example) { play.click(); event.preventDefault(); }
    const version = keyed(event, names.length);
    if (version !== undefined) choose(version);
  };
  show();
}
