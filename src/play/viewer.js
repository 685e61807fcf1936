// viewer.js: plays the rollout that is in the page (viewer.html).
'use strict';
const $ = id => document.getElementById(id);
// Color-blind people can tell any two apart, on a light and on a dark page (tests/play/page_test.py).
const COLORS = ['#d55e00', '#2b7bd0', '#d29ab3', '#814958', '#a295f7', '#1558ac', '#a67088', '#ae4006'];
const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 120];  // steps per second
const rollout = JSON.parse($('rollout').textContent);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const round = x => x === null || x === undefined ? '-' :
    !Number.isFinite(x) || Number.isInteger(x)   ? String(x) :
                                                   Number(x.toPrecision(4)).toString();

// --- Numbers ---

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A series as a function of (moment, index).
function unpack(bytes, s) {
  const n = s.width * s.moments, numbers = new Float64Array(n);
  if (s.type === 'f32') {
    const view = new DataView(bytes.buffer, s.at);
    for (let i = 0; i < n; ++i) numbers[i] = view.getFloat32(4 * i, true);
  } else {
    const wide = s.type === 'u16', mask = wide ? 0xffff : 0xff;
    for (let i = 0, at = s.at; i < s.width; ++i) {
      for (let m = 0, sum = 0; m < s.moments; ++m, ++at) {
        sum = (sum + bytes[at] + (wide ? bytes[at + n] << 8 : 0)) & mask;
        numbers[m * s.width + i] = s.min + s.step * sum;
      }
    }
  }
  const read = (m, i) => numbers[m * s.width + i];
  return Object.assign(read, {
    width: s.width,
    moments: s.moments,
    digits: Math.min(Math.max(Math.ceil(-Math.log10(s.step || 1e-7)), 0), 12)
  });
}

// --- The episode that is shown ---

const agents = [];  // {id, role, slot}
rollout.roles.forEach((role, r) => {
  role.first = agents.length;
  role.color = COLORS[r % COLORS.length];
  for (let slot = 0; slot < role.count; ++slot) agents.push({id: agents.length, role, slot});
});
const perAgent = rollout.fields.filter(f => f.per_agent),
      perReplica = rollout.fields.filter(f => !f.per_agent);  // numbers, and arrays
const roleName = agent => rollout.roles.length > 1 ? `${agent.role.name} ${agent.id}` :
    agents.length > 1 ? `agent ${agent.id}` :
                        agent.role.name;

// Why training ended in the last step, and the agent that it began with, if there is one.
const failure = rollout.failure, failed = failure ? agents[failure.agent] ?? null : null;

// One world, or two beside each other: {canvas, caption, episode, toPixels, places}. `episode` is the one
// that the numbers are of.
let panes = [], episode, frame = 0, playing = false, speed = 5, selected = null, bytes;
const lastFrame = () => Math.max(...panes.map(pane => pane.episode.steps));

function load(index) {
  const source = rollout.episodes[index];
  const episode =
      {steps: source.steps, whole: source.whole, players: source.players, state: {}, roles: {}, events: []};
  for (const [name, series] of Object.entries(source.state)) episode.state[name] = unpack(bytes, series);
  for (const role of rollout.roles) {
    const data = {};
    for (const [name, series] of Object.entries(source.roles[role.name])) data[name] = unpack(bytes, series);
    episode.roles[role.name] = data;
    data.returns = sums(data.reward, role.count);
  }
  if (source.pictures) episode.pictures = {...source.pictures, frames: framesOf(source.pictures)};
  for (let f = 1; f <= episode.steps; ++f)
    for (const agent of agents)
      if (inGame(episode, agent, f - 1) !== inGame(episode, agent, f))
        episode.events.push({
          f,
          agent,
          text: `${roleName(agent)} ${inGame(episode, agent, f) ? 'enters' : 'leaves'} the game`
        });
  if (failure) episode.events.push({f: episode.steps, agent: failed, text: failure.message, bad: true});
  return episode;
}

// A world for each of these episodes.
function setPanes(indices) {
  $('worlds').replaceChildren();
  panes = indices.map((index, k) => {
    const figure = document.createElement('figure'), canvas = document.createElement('canvas'),
          caption = document.createElement('figcaption'),
          pane = {canvas, caption, episode: load(index), places: []};
    canvas.id = k === 0 ? 'world' : `world-${k + 1}`;
    canvas.className = 'world';
    canvas.tabIndex = 0;
    canvas.ariaLabel = 'The world. Click an agent to select it.';
    canvas.onclick = event => selectAt(pane, event);
    figure.append(canvas, caption);
    $('worlds').append(figure);
    return pane;
  });
  episode = panes[0].episode;
  document.documentElement.style.setProperty('--panes', panes.length);
  $('scrub').max = lastFrame();
  $('step').style.minWidth = `${9 + 2 * String(lastFrame()).length}ch`;
  $('legend').innerHTML = legendOf();
  showEvents();
}

// [steps + 1][agents, then their mean]: rewards so far
function sums(reward, count) {
  const rows = [new Float64Array(count + 1)];
  for (let m = 0; m < reward.moments; ++m) {
    const row = rows[m].slice();
    for (let i = 0; i < count; ++i) {
      row[i] += reward(m, i);
      row[count] += reward(m, i) / count;
    }
    rows.push(row);
  }
  return rows;
}

// What the environment showed of itself, by frame: bytes, each a color of a cube of 6 x 6 x 6.
function framesOf({at, width, height, frames}) {
  const size = width * height;
  let before = new Uint8Array(size);
  return Array.from({length: frames}, (_, m) => {
    before = bytes.slice(at + m * size, at + (m + 1) * size).map((byte, i) => byte ^ before[i]);
    return before;
  });
}

// Marks a row whose number is NaN or infinite.
const bad = (series, m, i) => Number.isFinite(series(m, i)) ? '' : ' class="bad"';
// A number of a series with the digits that it was stored with.
const shown = (series, m, i) => round(Number(series(m, i).toFixed(series.digits)));

const inGame = (episode, agent, f) => episode.roles[agent.role.name].in_game(f, agent.slot) !== 0;

// --- Drawing ---

const drawing = rollout.drawing, shapes = drawing.shapes;
const pictured = rollout.episodes.find(e => e.pictures)?.pictures, isDrawn = shapes.length > 0 || pictured;
const isAgentField = new Set(perAgent.map(f => f.name)),
      hasIndex = new Set(rollout.fields.filter(f => f.per_agent || f.array).map(f => f.name));
const quantities = shape => [shape.x, shape.y, shape.width, shape.height, shape.angle];
const isPerAgent = shape =>
    shape.objects < 0 && quantities(shape).some(q => q.field && isAgentField.has(q.field));
const showsAgents = shapes.some(isPerAgent);
const valueOf = (episode, q, f, i) =>
    typeof q === 'number' ? q : q.offset + q.scale * episode.state[q.field](f, hasIndex.has(q.field) ? i : 0);

function fit(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
}

// Where something of this size lies in a canvas, below the caption.
function placed(pane, w, h, margin) {
  const {context, width, height} = fit(pane.canvas), head = panes.length > 1 ? 28 : margin;
  const scale = Math.max(Math.min((width - 2 * margin) / w, (height - margin - head) / h), 1e-6);
  return {
    context,
    scale,
    left: (width - w * scale) / 2,
    top: head + (height - head - margin - h * scale) / 2
  };
}

// World to pixels. The drawn frame may lie between two steps.
function worldView(pane) {
  const {context, scale, left, top} =
      placed(pane, drawing.right - drawing.left, drawing.top - drawing.bottom, 12);
  pane.toPixels = {scale, x: x => left + (x - drawing.left) * scale, y: y => top + (drawing.top - y) * scale};
  return context;
}

function between(episode, q, f, i, jump) {
  const low = Math.floor(f), a = valueOf(episode, q, low, i);
  if (low === f || low >= episode.steps) return a;
  const b = valueOf(episode, q, low + 1, i);
  return Math.abs(b - a) > jump ? a : a + (f - low) * (b - a);  // a wrapped position jumps
}

function drawCell(c, {episode, toPixels}, shape, f, i) {
  const name = shape.colors[Math.round(valueOf(episode, shape.x, Math.floor(f), i))] ?? 'gray';
  if (name === '') return;
  c.fillStyle =
      name[0] === '#' ? name : rollout.roles.find(role => role.name === name)?.color ?? css('--soft');
  const x = toPixels.x(i % shape.columns), y = toPixels.y(Math.floor(i / shape.columns)),
        side = toPixels.scale;
  c.beginPath();
  if (shape.discs)
    c.arc(x, y, 0.4 * side, 0, 2 * Math.PI);
  else
    c.rect(x - side / 2, y - side / 2, side, side);
  c.fill();
}

function drawShape(c, pane, shape, f, i, color) {
  if (shape.kind === 'cells') return drawCell(c, pane, shape, f, i);
  const {episode, toPixels} = pane;
  const size = Math.max(drawing.right - drawing.left, drawing.top - drawing.bottom),
        now = (q, jump) => between(episode, q, f, i, jump);
  const x = toPixels.x(now(shape.x, size / 3)), y = toPixels.y(now(shape.y, size / 3));
  const width = now(shape.width, Infinity) * toPixels.scale, angle = -now(shape.angle, Math.PI);
  c.fillStyle = c.strokeStyle = color;
  c.save();
  c.translate(x, y);
  c.rotate(angle);
  c.beginPath();
  if (width <= 0 && shape.kind !== 'line') {
    // what has no size is not there
  } else if (shape.kind === 'circle') {
    const radius = Math.max(width, 3);
    c.arc(0, 0, radius, 0, 2 * Math.PI);
    c.fill();
    if (shape.faces) {
      c.lineWidth = Math.max(radius / 3, 1.5);
      c.moveTo(0, 0);
      c.lineTo(radius * 1.8, 0);
      c.stroke();
    }
  } else if (shape.kind === 'rectangle') {
    const height = now(shape.height, Infinity) * toPixels.scale;
    c.fillRect(-width / 2, -height / 2, width, height);
  } else {
    c.lineWidth = 4;
    c.lineCap = 'round';
    c.moveTo(0, 0);
    c.lineTo(width, 0);
    c.stroke();
  }
  c.restore();
  return [x, y, width];
}

const agentsOf = shape => agents.filter(agent => shape.role === '' || agent.role.name === shape.role);

function drawTrails(c, {episode, toPixels}, shape, f) {
  const size = Math.max(drawing.right - drawing.left, drawing.top - drawing.bottom),
        first = Math.max(0, Math.floor(f) - 25);
  for (const agent of agentsOf(shape)) {
    if (!inGame(episode, agent, Math.floor(f))) continue;
    c.strokeStyle = agent.role.color;
    for (let m = first; m < Math.floor(f); ++m) {
      if (!inGame(episode, agent, m)) continue;
      const [x, y] = [shape.x, shape.y].map(q => [0, 1].map(k => valueOf(episode, q, m + k, agent.id)));
      if (Math.abs(x[1] - x[0]) > size / 3 || Math.abs(y[1] - y[0]) > size / 3) continue;
      c.globalAlpha = 0.45 * (m - Math.floor(f) + 26) / 26;
      c.lineWidth = 1.5;
      c.beginPath();
      c.moveTo(toPixels.x(x[0]), toPixels.y(y[0]));
      c.lineTo(toPixels.x(x[1]), toPixels.y(y[1]));
      c.stroke();
    }
  }
  c.globalAlpha = 1;
}

function drawGrid(c, {toPixels}) {
  c.strokeStyle = css('--line');
  c.lineWidth = 1;
  c.strokeRect(
      toPixels.x(drawing.left), toPixels.y(drawing.top), (drawing.right - drawing.left) * toPixels.scale,
      (drawing.top - drawing.bottom) * toPixels.scale);
  if (!(drawing.grid > 0) || drawing.grid * toPixels.scale < 3) return;
  c.beginPath();
  for (let x = drawing.left; x <= drawing.right; x += drawing.grid) {
    c.moveTo(toPixels.x(x), toPixels.y(drawing.bottom));
    c.lineTo(toPixels.x(x), toPixels.y(drawing.top));
  }
  for (let y = drawing.bottom; y <= drawing.top; y += drawing.grid) {
    c.moveTo(toPixels.x(drawing.left), toPixels.y(y));
    c.lineTo(toPixels.x(drawing.right), toPixels.y(y));
  }
  c.stroke();
}

function drawWorlds(f) {
  if (!isDrawn) return showStates(Math.min(Math.floor(f), episode.steps));
  for (const pane of panes) drawWorld(pane, Math.min(f, pane.episode.steps));
}

// Red, green, blue and 255 of each color of the cube, as a number of little-endian bytes.
const CUBE = Uint32Array.from(
    {length: 216},
    (_, k) => 0xff000000 + 51 * (k % 6 * 65536 + Math.floor(k / 6) % 6 * 256 + Math.floor(k / 36)));

function drawPicture(pane, {width: w, height: h, frames}, f) {
  const last = frames.length - 1, small = document.createElement('canvas');
  const colors = Uint32Array.from(frames[Math.min(f, last)], color => CUBE[color]);
  [small.width, small.height] = [w, h];
  small.getContext('2d').putImageData(new ImageData(new Uint8ClampedArray(colors.buffer), w, h), 0, 0);
  const {context, scale, left, top} = placed(pane, w, h, 6);
  context.drawImage(small, left, top, w * scale, h * scale);
  if (f > last) pane.caption.textContent += ` (pictures of the first ${last} steps)`;
}

function drawWorld(pane, f) {
  const now = Math.floor(f), {episode} = pane;
  pane.caption.innerHTML = panes.length > 1 ? captionOf(episode, now) : '';
  if (shapes.length === 0) return episode.pictures && drawPicture(pane, episode.pictures, now);
  const c = worldView(pane), {toPixels} = pane;
  pane.places = [];  // where agents are on the canvas
  drawGrid(c, pane);
  const trails =
      $('trails').checked ? shapes.filter(shape => isPerAgent(shape) && shape.kind === 'circle') : [];
  for (const shape of shapes) {
    if (!isPerAgent(shape)) {
      for (let i = 0; i < Math.max(shape.objects, 1); ++i)
        if (shape.objects !== 0) drawShape(c, pane, shape, f, i, css('--soft'));
      continue;
    }
    for (const circle of trails.splice(0)) drawTrails(c, pane, circle, f);  // on the ground, below agents
    for (const agent of agentsOf(shape)) {
      if (!inGame(episode, agent, now)) continue;
      const [x, y, width] = drawShape(c, pane, shape, f, agent.id, agent.role.color);
      pane.places.push({agent, x, y});
      if (agent === selected && agents.length > 1) {
        c.strokeStyle = css('--ink');
        c.lineWidth = 2;
        c.beginPath();
        c.arc(x, y, (shape.kind === 'circle' ? Math.max(width, 3) : 6) + 4, 0, 2 * Math.PI);
        c.stroke();
      }
      if ($('ids').checked) {
        c.fillStyle = css('--ink');
        c.font = '11px system-ui';
        c.fillText(agent.id, x + 5, y - 5);
      }
    }
  }
  const position = shapes.find(isPerAgent);
  for (const event of episode.events) {  // a ring that fades where an agent left
    const age = f - event.f;
    if (event.bad || age < -0.5 || age > 6 || !position) continue;
    c.strokeStyle = event.agent.role.color;
    c.globalAlpha = 1 - Math.max(age, 0) / 6;
    c.lineWidth = 2;
    c.beginPath();
    c.arc(
        toPixels.x(valueOf(episode, position.x, event.f, event.agent.id)),
        toPixels.y(valueOf(episode, position.y, event.f, event.agent.id)), 5 + 2.5 * Math.max(age, 0), 0,
        2 * Math.PI);
    c.stroke();
    c.globalAlpha = 1;
  }
}

const legendOf = () =>
    rollout.roles.map(role => `${dot(role)}${escape(role.name)}${role.count > 1 ? ' (mean of all)' : ''}`)
        .concat(
            panes.length > 1 ?
                `dashed: ${escape([...new Set(Object.values(panes[1].episode.players))].join(', '))}` :
                [])
        .join(' &nbsp; ');

// "random: -3.2", "trained: tagger 3, runner -1", or "trained tagger 3, random runner -1": players and
// returns so far.
function captionOf(e, f) {
  const one = new Set(Object.values(e.players)).size === 1;
  const texts = rollout.roles.map(role => {
    const name = rollout.roles.length > 1 ? `${one ? '' : `${e.players[role.name]} `}${role.name} ` : '';
    return `${dot(role)}${escape(name)}${round(e.roles[role.name].returns[f][role.count])}`;
  });
  return `${one ? `${escape(Object.values(e.players)[0])}: ` : ''}${texts.join(', ')}`;
}

// Without shapes: a table of what the agents' state fields hold.
function showStates(f) {
  const rows =
      agents.filter(agent => inGame(episode, agent, f))
          .map(
              agent => `<tr data-agent="${agent.id}" class="${agent === selected ? 'selected' : ''} ${
                           failure && agent === failed && f === episode.steps ?
                               'bad' :
                               ''}"><td>${dot(agent.role)}${escape(roleName(agent))}</td>` +
                  perAgent.map(field => `<td>${shown(episode.state[field.name], f, agent.id)}</td>`)
                      .join('') +
                  '</tr>');
  const hint = perAgent.length > 0 ?
      '' :
      '<p>This environment has no drawing and no state to show, and made no pictures of itself ' +
          '(render() in Python).</p>';
  $('states').innerHTML = `${hint}<table><tr><th></th>${
      perAgent.map(field => `<th>${escape(field.name)}</th>`).join('')}</tr>${rows.join('')}</table>`;
}

// --- Panels ---

const escape = text =>
    String(text).replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[c]);
// "adversaries".
const plural = role => role.count === 1 ? role.name :
    /[^aeiou]y$/.test(role.name)        ? `${role.name.slice(0, -1)}ies` :
           /(s|x|z|ch|sh)$/.test(role.name) ? `${role.name}es` :
                                              `${role.name}s`;
const dot = role => `<span class="dot" style="background:${role.color}"></span>`;

function showAgent(f) {
  if (selected === null) {
    $('agent').innerHTML = `<h2>Agent</h2><span class="small">Select an agent: click ${
        showsAgents || !isDrawn ? 'it' : 'the world'}, or press ] .</span>`;
    return;
  }
  const role = selected.role, data = episode.roles[role.name], step = Math.min(f, episode.steps - 1),
        slot = selected.slot;
  let text = `<h2>${dot(role)}${escape(roleName(selected))} <span class="small">${
      escape(episode.players[role.name])}${
      inGame(episode, selected, f) ? '' : ', out of the game'}</span></h2><table>`;
  for (const field of perAgent)
    text += `<tr${bad(episode.state[field.name], f, selected.id)}><td>${escape(field.name)}</td><td>${
        shown(episode.state[field.name], f, selected.id)}</td></tr>`;
  if (step >= 0) {
    text += `<tr${bad(data.reward, step, slot)}><td>reward of this step</td><td>${
        shown(
            data.reward, step,
            slot)}</td></tr><tr><td>return so far</td><td>${round(data.returns[f][slot])}</td></tr>`;
    if (data.value) text += `<tr><td>value estimate</td><td>${shown(data.value, step, slot)}</td></tr>`;
  }
  text += '</table>';
  let first = 0;
  const choices = role.actions.reduce((sum, action) => sum + (action.choices || 0), 0);
  role.actions.forEach((action, k) => {
    if (step < 0) return;
    const taken = data.action(step, slot * role.actions.length + k);
    text += `<div class="small">${escape(action.name)}: ${
        shown(data.action, step, slot * role.actions.length + k)}`;
    if (data.probability && (slot + 1) * choices > data.probability.width) {
      text += '. The probabilities of agents before this one are here; --out FILE.json has all.</div>';
    } else if (data.probability) {
      const all = Array.from(
          {length: action.choices}, (_, choice) => data.probability(step, slot * choices + first + choice));
      const most = Math.max(...all);
      text +=
          `, taken with ${(100 * all[taken]).toFixed(1)} % (highest bar: ${(100 * most).toFixed(1)} %)</div>`;
      text += '<div class="bars" role="img" aria-label="probabilities of the choices">';
      all.forEach((p, choice) => {
        text += `<i title="choice ${choice}: ${(100 * p).toFixed(1)} %" style="height:${
            (100 * p / most).toFixed(1)}%"${choice === taken ? ' class="taken"' : ''}></i>`;
      });
      text += '</div>';
    } else {
      const at = slot * role.actions.length + k;
      if (data.mean)
        text += `, mean ${shown(data.mean, step, at)}, one standard deviation [${
            shown(data.below, step, at)}, ${shown(data.above, step, at)}]`;
      text += '</div>';
      if ('low' in action) text += box(action, data, step, at);
    }
    first += action.choices || 0;
  });
  $('agent').innerHTML = text;
}

// An action of a box as a bar from the middle, with the policy's mean and one standard deviation around it.
function box(action, data, step, at) {
  const place = value => Math.min(Math.max(100 * (value - action.low) / (action.high - action.low), 0), 100);
  const bar = (name, from, to) => `<i class="${name}" style="left:${Math.min(from, to).toFixed(1)}%;width:${
      Math.abs(to - from).toFixed(1)}%"></i>`;
  let text = `<div class="box" role="img" aria-label="${escape(action.name)} between ${action.low} and ${
      action.high}">`;
  if (data.mean) text += bar('spread', place(data.below(step, at)), place(data.above(step, at)));
  text += bar('amount', 50, place(data.action(step, at)));
  if (data.mean) text += bar('mean', place(data.mean(step, at)), place(data.mean(step, at)));
  return `${text}${bar('middle', 50, 50)}</div>`;
}

// The number of a field per replica, or the first ones of an array.
function valuesOf(field, f) {
  const series = episode.state[field.name], most = 12;
  if (!field.array) return shown(series, f, 0);
  const values = Array.from({length: Math.min(series.width, most)}, (_, i) => shown(series, f, i)).join(', ');
  return series.width > most ? `${values}, … (${series.width} values)` : values || 'none';
}

function showReplica(f) {
  let text = rollout.roles
                 .map(role => {
                   const there =
                       agents.filter(agent => agent.role === role && inGame(episode, agent, f)).length;
                   return `<tr><td>${dot(role)}${escape(plural(role))} in the game</td><td>${there} of ${
                       role.count}</td></tr>`;
                 })
                 .join('');
  for (const field of perReplica)
    text += `<tr><td>${escape(field.name)}</td><td>${valuesOf(field, f)}</td></tr>`;
  $('replica').innerHTML = text;
}

function showEvents() {
  $('events').replaceChildren(...episode.events.map(event => {
    const button = document.createElement('button');
    button.innerHTML = `<span class="small">${event.f}</span> ${event.agent ? dot(event.agent.role) : ''}${
        escape(event.text)}`;
    button.onclick = () => {
      selected = event.agent ?? selected;
      go(event.f);
    };
    return button;
  }));
  $('events-section').hidden = episode.events.length === 0;
}

// Lines over all steps: [{color, at: step => number, last, strong, dashed}]
function chart(canvas, lines, f) {
  const {context: c, width, height} = fit(canvas), bottom = height - 14, n = lastFrame();
  let low = Infinity, high = -Infinity;
  for (const line of lines)
    for (let m = 0; m <= line.last; ++m) {
      const v = line.at(m);
      if (v < low) low = v;
      if (v > high) high = v;
    }
  if (!(high >= low)) return;
  const least = Math.max(1e-3 * Math.max(Math.abs(low), Math.abs(high)), 1e-9);
  if (high - low < least) {
    high += high === low ? 1 : least;
    low -= high === low ? 1 : least;
  }
  c.font = '11px system-ui';
  const left = canvas.left = 9 + Math.max(40, ...[low, high].map(v => c.measureText(round(v)).width)),
        x = m => left + (width - left - 4) * m / Math.max(n, 1),
        y = v => bottom - (bottom - 6) * (v - low) / (high - low);
  c.fillStyle = css('--soft');
  c.textAlign = 'right';
  c.fillText(round(high), left - 5, 13);
  c.fillText(round(low), left - 5, bottom);
  c.textAlign = 'left';
  c.fillText('0', left, height - 2);
  c.textAlign = 'right';
  c.fillText(n, width - 4, height - 2);
  c.strokeStyle = css('--line');
  c.lineWidth = 1;
  c.strokeRect(left, 6, width - left - 4, bottom - 6);
  for (const line of lines) {
    c.strokeStyle = line.color;
    c.lineWidth = line.strong ? 2.5 : 1.5;
    c.setLineDash(line.dashed ? [5, 3] : []);
    c.beginPath();
    for (let m = 0; m <= line.last; ++m) c.lineTo(x(m), y(line.at(m)));
    c.stroke();
  }
  c.setLineDash([]);
  c.strokeStyle = css('--ink');
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(x(f), 6);
  c.lineTo(x(f), bottom);
  c.stroke();
}

function showCharts(f) {
  const returns = [], values = [];
  panes.forEach(({episode}, p) => {
    for (const role of rollout.roles) {
      const data = episode.roles[role.name], n = role.count, color = role.color, dashed = p > 0;
      returns.push({color, dashed, last: episode.steps, at: m => data.returns[m][n]});
      if (!data.value || episode.steps === 0) continue;
      data.means ||= Array.from({length: episode.steps}, (_, m) => {
        let sum = 0;
        for (let i = 0; i < n; ++i) sum += data.value(m, i);
        return sum / n;
      });
      values.push({color, dashed, last: episode.steps - 1, at: m => data.means[m]});
    }
  });
  if (selected && agents.length > 1) {
    const data = episode.roles[selected.role.name], i = selected.slot, color = css('--ink');
    returns.push({color, strong: true, last: episode.steps, at: m => data.returns[m][i]});
    if (data.value) values.push({color, strong: true, last: episode.steps - 1, at: m => data.value(m, i)});
  }
  chart($('returns'), returns, f);
  $('values').hidden = $('values-title').hidden = values.length === 0;
  if (values.length > 0) chart($('values'), values, f);
}

// --- Control ---

function show(exact = frame) {
  const f = Math.floor(frame), most = lastFrame(), own = Math.min(f, episode.steps);
  $('scrub').value = f;
  $('step').textContent =
      `step ${f} of ${most}${f === most && !panes.every(p => p.episode.whole) ? ' (recorded)' : ''}`;
  drawWorlds(exact);
  showAgent(own);
  showReplica(own);
  showCharts(f);
}
function go(f) {
  frame = Math.max(0, Math.min(lastFrame(), f));
  show();
}
function setPlaying(on) {
  playing = on && lastFrame() > 0;
  if (playing && frame >= lastFrame()) frame = 0;
  $('play').textContent = playing ? 'Pause' : 'Play';
  if (playing) {
    last = null;
    requestAnimationFrame(advance);
  }
}
let last = null, shownStep = -1;
function advance(time) {
  if (!playing) return;
  if (last !== null) frame = Math.min(lastFrame(), frame + (time - last) / 1000 * SPEEDS[speed]);
  last = time;
  if (Math.floor(frame) !== shownStep) {
    shownStep = Math.floor(frame);
    show();
  } else
    drawWorlds(frame);
  if (frame >= lastFrame()) {
    setPlaying(false);
    show();
    if ($('loop').checked) setTimeout(() => frame >= lastFrame() && !playing && setPlaying(true), 1000);
    return;
  }
  requestAnimationFrame(advance);
}
function setSpeed(index) {
  speed = Math.max(0, Math.min(SPEEDS.length - 1, index));
  $('speed').value = speed;
}
function select(agent) {
  selected = agent;
  show();
}
function nextAgent(by) {
  select(agents[((selected ? selected.id : by > 0 ? -1 : 0) + by + agents.length) % agents.length]);
}
// The world at a click is that whose numbers are shown.
function selectAt(pane, event) {
  const box = pane.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let best = null, least = 24;
  for (const place of pane.places) {
    const d = Math.hypot(place.x - x, place.y - y);
    if (d < least) {
      least = d;
      best = place.agent;
    }
  }
  episode = pane.episode;
  showEvents();
  if (!showsAgents) return nextAgent(1);
  select(best ?? (agents.length === 1 ? agents[0] : null));
}
// The second half of the episodes plays beside the first half, if they were recorded so.
const partner = index =>
    rollout.beside ? (index + rollout.episodes.length / 2) % rollout.episodes.length : -1;
const nextTo = index => rollout.beside ? partner(index) : (index + 1) % rollout.episodes.length;
function setEpisode(index, beside = panes.length > 1 ? nextTo(index) : -1) {
  $('episode').value = index;
  $('beside').value = beside;
  setPanes(beside < 0 || beside === index || !isDrawn ? [index] : [index, beside]);
  frame = 0;
  show();
}

function begin() {
  $('title').textContent = document.title =
      `${rollout.title}: ${failure ? 'training failed, a number is not finite' : 'a rollout'}`;
  $('failure').hidden = !failure;
  if (failure) $('failure').textContent = `Training ended after this step. ${failure.message}.`;
  $('about').textContent = `${rollout.run} · ${rollout.version}`;
  $('speed').innerHTML = SPEEDS.map((s, k) => `<option value="${k}">${s} steps/s</option>`).join('');
  $('episode').innerHTML =
      rollout.episodes.map((e, k) => `<option value="${k}">${escape(episodeTitle(e, k))}</option>`).join('');
  $('beside').innerHTML = `<option value="-1">nothing beside it</option>${
      $('episode').innerHTML.replaceAll(/>(?=\d)/g, '>beside ')}`;
  $('episode').hidden = $('beside').hidden = rollout.episodes.length < 2;
  $('trails').parentElement.hidden = $('ids').parentElement.hidden = !showsAgents;
  if (!isDrawn) {
    $('worlds').hidden = $('beside').hidden = true;
    $('states').hidden = false;
  }
  const embedded = window !== window.top;
  document.documentElement.classList.toggle('embedded', embedded);
  document.documentElement.style.setProperty(
      '--aspect',
      shapes.length === 0 && pictured ? pictured.width / pictured.height :
                                        (drawing.right - drawing.left) / (drawing.top - drawing.bottom) || 1);
  $('loop').checked = embedded;
  $('full').hidden = !document.fullscreenEnabled;
  selected = failed ?? (agents.length === 1 ? agents[0] : null);
  $('play').onclick = () => setPlaying(!playing);
  $('back').onclick = () => {
    setPlaying(false);
    go(Math.ceil(frame) - 1);
  };
  $('next').onclick = () => {
    setPlaying(false);
    go(Math.floor(frame) + 1);
  };
  $('scrub').oninput = event => {
    setPlaying(false);
    go(Number(event.target.value));
  };
  $('speed').onchange = event => setSpeed(Number(event.target.value));
  $('episode').onchange = event => setEpisode(Number(event.target.value));
  $('trails').onchange = $('ids').onchange = () => show();
  $('beside').onchange = event => setEpisode(Number($('episode').value), Number(event.target.value));
  $('panel').onclick = () => document.querySelector('main').classList.toggle('alone');
  $('full').onclick = () =>
      document.fullscreenElement ? document.exitFullscreen() : $('stage').requestFullscreen();
  $('states').onclick = event => {
    const row = event.target.closest('tr[data-agent]');
    if (row) select(agents[Number(row.dataset.agent)]);
  };
  for (const canvas of [$('returns'), $('values')])
    canvas.onclick = event => {
      const box = canvas.getBoundingClientRect();
      setPlaying(false);
      go(Math.round((event.clientX - box.left - canvas.left) / (box.width - canvas.left - 4) * lastFrame()));
    };
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(SELECT)$/.test(event.target.tagName)) return;
    if (event.key === ' ' && event.target.tagName === 'BUTTON') return;  // presses the button
    const by = event.shiftKey ? 10 : 1;
    const actions = {
      ' ': () => setPlaying(!playing),
      ArrowLeft: () => {
        setPlaying(false);
        go(Math.ceil(frame) - by);
      },
      ArrowRight: () => {
        setPlaying(false);
        go(Math.floor(frame) + by);
      },
      Home: () => go(0),
      End: () => go(lastFrame()),
      '+': () => setSpeed(speed + 1),
      '=': () => setSpeed(speed + 1),
      '-': () => setSpeed(speed - 1),
      ']': () => nextAgent(1),
      '[': () => nextAgent(-1),
      t: () => $('trails').click(),
      i: () => $('ids').click(),
      e: () => setEpisode((Number($('episode').value) + 1) % rollout.episodes.length),
      b: () =>
          setEpisode(Number($('episode').value), panes.length > 1 ? -1 : nextTo(Number($('episode').value))),
      l: () => $('loop').click(),
      p: () => $('panel').click(),
      f: () => $('full').click(),
    };
    const action = actions[event.key] || actions[event.key.toLowerCase()];
    if (action) {
      event.preventDefault();
      action();
    }
  });
  new ResizeObserver(() => show()).observe($('stage'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => show());
  setSpeed(episodeSpeed());
  setEpisode(0, partner(0));
  if (failure) return go(lastFrame());
  const step = /^#step=(\d+)$/.exec(location.hash);  // of a link to a moment
  if (step) return go(Number(step[1]));
  if (!matchMedia('(prefers-reduced-motion: reduce)').matches) setPlaying(true);
}
function episodeTitle(e, k) {
  const players = Object.entries(e.players), all = new Set(Object.values(e.players));
  const who =
      all.size === 1 ? players[0][1] : players.map(([role, player]) => `${player} ${role}`).join(' against ');
  return `${k + 1}: ${who}`;
}
// An episode takes about 15 seconds.
function episodeSpeed() {
  const wanted = Math.max(...rollout.episodes.map(e => e.steps)) / 15;
  return SPEEDS.reduce(
      (best, s, k) => Math.abs(Math.log(s / wanted)) < Math.abs(Math.log(SPEEDS[best] / wanted)) ? k : best,
      0);
}

inflate($('numbers').textContent.trim())
    .then(result => {
      bytes = result;
      begin();
    })
    .catch(error => {
      $('problem').hidden = false;
      $('problem').textContent = `This page cannot be shown: ${error}. It needs a browser of 2023 or later.`;
    });
