// page.js: shows a report: learning curves by dygraphs, and tables.
'use strict';

const $ = id => document.getElementById(id);
// Those of viewer.js, which color-blind people can tell apart.
const COLORS = ['#d55e00', '#2b7bd0', '#d29ab3', '#814958', '#a295f7', '#1558ac', '#a67088', '#ae4006'];
const DASHES = [null, [7, 3], [2, 2]];
const darkMode = matchMedia('(prefers-color-scheme: dark)');
const colorOf = index => COLORS[index % COLORS.length];
const dashOf = index => DASHES[Math.floor(index / COLORS.length) % DASHES.length];
// Metrics of a policy that everybody looks at, in this order.
const FIRST = [
  'recent_return', 'policy_loss', 'value_loss', 'q_loss', 'actor_loss', 'td_error', 'entropy',
  'explained_variance', 'approx_kl', 'grad_norm'
];

let report, metric, axis = 'steps', show = 'groups', chart = null, series = [], rows = [], cursor = -1;
const hidden = new Set();  // names of series

// --- Text ---

function element(tag, text = '', className = '') {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
}

function count(value) {
  if (value === null || value === undefined) return '-';
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (Math.abs(value) >= 0.9995 * size) return `${parseFloat((value / size).toPrecision(3))}${unit}`;
  return `${parseFloat(value.toPrecision(3))}`;
}

function number(value) {
  if (value === null || value === undefined) return '-';
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e6 || size < 1e-3) ? value.toExponential(3) :
                                                      `${parseFloat(value.toPrecision(5))}`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return '-';
  if (seconds < 60) return `${parseFloat(seconds.toPrecision(3))} s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (hours === 0) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function bytes(value) {
  if (value === null) return '-';
  return value < 1000 * 2 ** 20 ? `${(value / 2 ** 20).toFixed(0)} MiB` :
                                  `${(value / 2 ** 30).toFixed(1)} GiB`;
}

// Of a summary that another program may have written.
const word = value => ['string', 'number'].includes(typeof value) && value !== '' ? `${value}` : '-';

const interval = (low, high) => low === null ? '-' : `[${number(low)}, ${number(high)}]`;

// The parts of the paths of runs in which they differ.
function namesOf(paths) {
  const split = paths.map(path => path.split('/').filter(part => part !== ''));
  let same = 0;
  while (split.every(parts => parts.length > same + 1 && parts[same] === split[0][same])) ++same;
  return split.map(parts => parts.slice(paths.length > 1 ? same : -1).join('/'));
}

// A table of texts; a cell may also be an element. Columns named in `numbers` are aligned to the right.
function fill(id, headings, lines, numbers = []) {
  const table = $(id), head = document.createElement('thead'), body = document.createElement('tbody');
  const row = (cells, tag) => {
    const made = document.createElement('tr');
    cells.forEach((cell, k) => {
      const place = element(tag, '', numbers.includes(headings[k]) ? 'number' : '');
      place.append(cell);
      made.append(place);
    });
    return made;
  };
  head.append(row(headings, 'th'));
  for (const cells of lines) body.append(row(cells, 'td'));
  table.replaceChildren(head, body);
}

// --- Data ---

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

function sums(differences) {
  let sum = 0;
  return differences.map(difference => sum += difference);
}

function unpack() {
  for (const each of report.metrics) {
    for (const curve of each.curves) {
      curve.x = {steps: sums(curve.steps), time: sums(curve.ms).map(ms => ms / 1000)};
      curve.middle = curve.low = curve.high = curve.values;
    }
    for (const band of each.bands) band.x = {steps: sums(band.steps)};
  }
  const names = namesOf(report.runs.map(run => run.path));
  report.runs.forEach((run, r) => run.name = names[r]);
}

// What the chart shows of the metric: {name, color, curve}, where a curve has x, low, middle and high.
function seriesOf(chosen) {
  const groups = show === 'groups' && axis === 'steps';
  const found = [];
  report.groups.forEach((group, g) => {
    const band = groups ? chosen.bands.find(each => each.group === g) : undefined;
    if (band) return found.push({name: `${group.label} (${group.runs.length} runs)`, color: g, curve: band});
    for (const r of group.runs) {
      const curve = chosen.curves.find(each => each.run === r);
      const single = group.runs.length === 1;
      if (curve)
        found.push(
            {name: single ? group.label : report.runs[r].name, color: groups || single ? g : r, curve});
    }
  });
  if (!groups) found.forEach((each, k) => each.color = k);
  const used = new Map();
  for (const each of found) {  // the chart needs different names
    const use = (used.get(each.name) || 0) + 1;
    used.set(each.name, use);
    if (use > 1) each.name += ` (${use})`;
  }
  return found;
}

// Rows [x, [low, middle, high], ...] of all points of all series.
function rowsOf(shown) {
  const byX = new Map();
  shown.forEach((each, k) => {
    each.curve.x[axis].forEach((x, i) => {
      if (!byX.has(x)) byX.set(x, [x, ...shown.map(() => null)]);
      byX.get(x)[k + 1] = [each.curve.low[i], each.curve.middle[i], each.curve.high[i]];
    });
  });
  return [...byX.values()].sort((a, b) => a[0] - b[0]);
}

// Index of the last point at or before x; -1 if there is none.
function placeOf(xs, x) {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

// --- The chart ---

const xText = x => axis === 'steps' ? count(x) : duration(x);

// A chart of these series in this place.
function plot(place, series, rows, more) {
  const style = getComputedStyle(document.documentElement);
  const options = {};
  series.forEach(
      each => options[each.name] = {color: colorOf(each.color), strokePattern: dashOf(each.color)});
  return new Dygraph(place, rows, {
    labels: ['x', ...series.map(each => each.name)],
    series: options,
    visibility: series.map(each => !hidden.has(each.name)),
    customBars: true,
    connectSeparatedPoints: true,
    drawPoints: rows.length < 2,
    strokeWidth: 1.6,
    fillAlpha: 0.18,
    legend: 'never',
    axisLineColor: style.getPropertyValue('--line'),
    gridLineColor: style.getPropertyValue('--line'),
    axisLabelFontSize: 12,
    axes: {
      x: {axisLabelFormatter: xText, valueFormatter: xText, axisLabelWidth: 70},
      y: {
        axisLabelFormatter: value => Math.abs(value) >= 1e4 ? count(value) : number(value),
        axisLabelWidth: 56
      }
    },
    ...more
  });
}

function drawChart() {
  if (chart) chart.destroy();
  chart = null;
  cursor = -1;
  series = seriesOf(metric);
  rows = rowsOf(series);
  chart = plot($('chart'), series, rows, {
    highlightCallback: (event, x, points, row) => {
      cursor = row;
      showValues(x);
    },
    unhighlightCallback: () => showValues(null)
  });
  $('chart').setAttribute(
      'aria-label', `${metric.name} over ${axis === 'steps' ? 'environment steps' : 'time'}`);
  $('help').textContent = metric.help;
  showLegend();
  showBandNote();
}

function showBandNote() {
  const bands = series.map(each => each.curve).filter(curve => curve.iterations !== undefined);
  const width = Math.max(1, ...bands.map(band => band.iterations));
  const means = width > 1 ? `, each run with its mean over ${width} iterations` : '';
  $('band-note').textContent = bands.length === 0 ? '' :
                                                    `Lines are medians over runs and bands their quartiles${
                                                        means}, as far as all runs of the group have come.`;
}

function showLegend() {
  $('legend').replaceChildren(...series.map((each, k) => {
    const item = document.createElement('li'), label = document.createElement('label'),
          box = document.createElement('input'), swatch = element('span', '', 'swatch');
    box.type = 'checkbox';
    box.checked = !hidden.has(each.name);
    box.addEventListener('change', () => {
      hidden[box.checked ? 'delete' : 'add'](each.name);
      chart.setVisibility(k, box.checked);
      redrawPanels();
    });
    swatch.style.background = colorOf(each.color);
    each.output = document.createElement('output');
    label.append(box, swatch, element('span', each.name), each.output);
    item.append(label);
    return item;
  }));
  $('all').hidden = $('none').hidden = series.length < 4;
  showValues(null);
}

// The value of a series at x; at its end if x is null.
function valueAt(each, x) {
  const xs = each.curve.x[axis], i = x === null ? xs.length - 1 : placeOf(xs, x);
  const {low, middle, high, iterations} = each.curve;
  return i < 0 || (x !== null && x > xs[xs.length - 1]) ? '-' :
      iterations !== undefined ? `${number(middle[i])} ${interval(low[i], high[i])}` :
                                 number(middle[i]);
}

const placeText = x => x === null ? 'Last values:' : `At ${axis === 'steps' ? `${x} steps` : duration(x)}:`;

function showValues(x) {
  const bands = series.some(each => each.curve.iterations !== undefined);
  $('cursor').textContent =
      x === null && bands ? 'Where the last step of all runs of a group is:' : placeText(x);
  for (const each of series) each.output.textContent = valueAt(each, x);
}

// --- Panels: a small chart of each metric, by policy ---

// They are drawn when they come into view.
const watcher = new IntersectionObserver(entries => {
  for (const {target, isIntersecting} of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    drawPanel(target);
  }
}, {rootMargin: '300px'});

function drawPanel(panel) {
  const [head, place, words] = panel.children, series = seriesOf(report.metrics[panel.dataset.metric]);
  const show = x => words.replaceChildren(
      ...x === null ? [] : [placeText(x), ' '],
      ...series.filter(each => !hidden.has(each.name)).slice(0, 8).flatMap(each => {
        const swatch = element('span', '', 'swatch');
        swatch.style.background = colorOf(each.color);
        return [swatch, ` ${valueAt(each, x)} `];
      }));
  if (panel.chart) panel.chart.destroy();
  panel.chart = plot(place, series, rowsOf(series), {
    visibility: series.map(each => !hidden.has(each.name)),
    interactionModel: {},
    axisLabelFontSize: 10,
    highlightCallback: (event, x) => show(x),
    unhighlightCallback: () => show(null)
  });
  show(null);
}

const redrawPanels = () => {
  for (const panel of document.querySelectorAll('.panel'))
    if (panel.chart) drawPanel(panel);
};

function fillPanels() {
  const byName = new Map();
  report.metrics.forEach((each, m) => {
    const name = each.name.includes('/') ? each.name.slice(0, each.name.indexOf('/')) : 'run';
    byName.set(name, [...byName.get(name) ?? [], m]);
  });
  const policy = name => byName.get(name).some(m => report.metrics[m].name === `${name}/recent_return`);
  const rank = name => policy(name) ? 0 : name === 'eval' ? 1 : name === 'env' ? 2 : 3;
  for (const name of [...byName.keys()].sort((a, b) => rank(a) - rank(b))) {
    const short = m => report.metrics[m].name.slice(name.length + 1);
    const isFirst = m =>
        policy(name) ? FIRST.includes(short(m)) : rank(name) === 2 || /\/return$/.test(short(m));
    const first = byName.get(name).filter(isFirst), others = byName.get(name).filter(m => !isFirst(m));
    if (policy(name)) first.sort((a, b) => FIRST.indexOf(short(a)) - FIRST.indexOf(short(b)));
    const panelsOf = metrics => {
      const grid = element('div', '', 'panels');
      for (const m of metrics) {
        const panel = element('div', '', 'panel'), head = element('button', report.metrics[m].name);
        head.title = `${report.metrics[m].help} (shows it above)`;
        head.onclick = () => {
          setMetric(m);
          $('curves').scrollIntoView({block: 'start'});
        };
        panel.dataset.metric = m;
        panel.append(head, element('div', '', 'plot'), element('p', '', 'small'));
        watcher.observe(panel);
        grid.append(panel);
      }
      return grid;
    };
    if (first.length > 0) $('panels').append(element('h3', name), panelsOf(first));
    if (others.length === 0) continue;
    const more = document.createElement('details');
    more.append(element('summary', `${others.length} other metrics of ${name}`), panelsOf(others));
    $('panels').append(more);
  }
}

function showAll(visible) {
  for (const each of series) hidden[visible ? 'delete' : 'add'](each.name);
  chart.updateOptions({visibility: series.map(() => visible)});
  showLegend();
  redrawPanels();
}

function zoom(factor) {
  const [low, high] = chart.xAxisRange(), [least, most] = chart.xAxisExtremes();
  const center = cursor >= 0 ? rows[cursor][0] : (low + high) / 2;
  const wide = [center - (center - low) * factor, center + (high - center) * factor];
  if (wide[0] <= least && wide[1] >= most) return resetZoom();
  chart.updateOptions({dateWindow: [Math.max(wide[0], least), Math.min(wide[1], most)]});
}

const resetZoom = () => chart.resetZoom();

// Moves the cursor to a row, or to the nearest one that is visible.
function moveTo(row) {
  if (rows.length === 0) return;
  const [low, high] = chart.xAxisRange();
  cursor = Math.min(Math.max(row, 0), rows.length - 1);
  while (cursor < rows.length - 1 && rows[cursor][0] < low) ++cursor;
  while (cursor > 0 && rows[cursor][0] > high) --cursor;
  chart.setSelection(cursor);
  showValues(rows[cursor][0]);
}

// The first step shows the cursor, at the end that it moves away from.
const moveBy = step => moveTo(cursor >= 0 ? cursor + step : step > 0 ? 0 : rows.length - 1);

function setMetric(index) {
  metric = report.metrics[index];
  $('metric').value = index;
  drawChart();
}

function fillMetrics() {
  const groups = new Map();
  report.metrics.forEach((each, m) => {
    const slash = each.name.indexOf('/'), name = slash < 0 ? 'run' : each.name.slice(0, slash);
    if (!groups.has(name)) {
      groups.set(name, document.createElement('optgroup'));
      groups.get(name).label = name;
    }
    const option = element('option', each.name);
    option.value = m;
    groups.get(name).append(option);
  });
  $('metric').append(...groups.values());
  $('show-label').hidden = report.groups.every(group => group.runs.length < 2);
}

function listen() {
  $('metric').addEventListener('change', () => setMetric(Number($('metric').value)));
  $('axis').addEventListener('change', () => {
    axis = $('axis').value;
    $('show').disabled = axis === 'time';  // runs differ in the times of their rows
    drawChart();
    redrawPanels();
  });
  $('show').addEventListener('change', () => {
    show = $('show').value;
    drawChart();
    redrawPanels();
  });
  $('zoom-in').addEventListener('click', () => zoom(0.5));
  $('zoom-out').addEventListener('click', () => zoom(2));
  $('reset').addEventListener('click', resetZoom);
  $('all').addEventListener('click', () => showAll(true));
  $('none').addEventListener('click', () => showAll(false));
  darkMode.addEventListener('change', () => {
    drawChart();
    redrawPanels();
    showTime();
  });
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = {'[': -1, ']': 1}[event.key];
    if (!next) return;
    const n = report.metrics.length;
    setMetric((report.metrics.indexOf(metric) + next + n) % n);
  });
  $('chart').addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    const action = {
      ArrowLeft: () => moveBy(-step),
      ArrowRight: () => moveBy(step),
      Home: () => moveTo(0),
      End: () => moveTo(rows.length - 1),
      '+': () => zoom(0.5),
      '=': () => zoom(0.5),
      '-': () => zoom(2),
      '0': resetZoom
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

// --- Tables ---

// With fewer runs, the IQM is the mean, and there is no interval (kMinRunsForIqm in scores.h).
const hasInterval = score => score.low !== null;

function showScores() {
  $('scores-section').hidden = report.scores.length === 0;
  const several = report.scores.some(score => score.runs > 1), wide = report.scores.some(hasInterval),
        differ = report.scores.some(score => score.difference);
  const value = score => hasInterval(score) ? `IQM ${number(score.iqm)}` :
      score.runs > 1 ? `mean ${number(score.iqm)}` :
                       number(score.iqm);
  const columns = [
    ['metric', score => score.metric, true], ['group', score => report.groups[score.group].label, true],
    ['runs', score => `${score.runs}`, several], ['return', value, true],
    ['95 % interval', score => interval(score.low, score.high), wide],
    ['median', score => score.runs > 1 ? number(score.median) : '', several],
    ['[min, max]', score => score.runs > 1 ? interval(score.min, score.max) : '', several],
    [
      'difference',
      score => {
        const d = score.difference;
        return d ?
            `${d.iqm > 0 ? '+' : ''}${number(d.iqm)} ${d.low === null ? '' : interval(d.low, d.high)}` :
            '';
      },
      differ
    ]
  ].filter(column => column[2]);
  fill(
      'scores', columns.map(column => column[0]),
      report.scores.map(score => columns.map(column => column[1](score))), ['runs', 'return', 'median']);
  $('iqm-note').hidden = !wide;
  $('mean-note').hidden = !report.scores.some(score => score.runs > 1 && !hasInterval(score));
  $('difference-note').hidden = !differ;
  $('stopped-note').hidden = report.reached.every(each => each.reached === 0);
}

function showReached() {
  $('reached-section').hidden = report.reached.length === 0;
  const spread = (value, text) => value === null ? '-' :
      value.min === value.max                    ? text(value.median) :
                                `${text(value.median)} [${text(value.min)}, ${text(value.max)}]`;
  fill(
      'reached', ['group', 'stop_return', 'reached by', 'steps', 'time'],
      report.reached.map(
          each =>
              [report.groups[each.group].label, each.return, `${each.reached} of ${each.runs}`,
               spread(each.steps, count), spread(each.seconds, duration)]));
}

function showEvaluation() {
  const lines = report.runs.flatMap(
      run => run.evaluation.map(
          each => [run.name, each.role, number(each.mean), interval(each.low, each.high)]));
  $('evaluation-section').hidden = lines.length === 0;
  fill('evaluation', ['run', 'role', 'return', '95 % interval'], lines, ['return']);
}

function showSettings() {
  $('settings-section').hidden = report.settings.length === 0;
  fill(
      'settings', ['setting', ...report.groups.map(group => group.label)],
      report.settings.map(setting => [setting.path, ...setting.values.map(value => value || '-')]));
  $('configuration-section').hidden = report.configuration.length === 0;
  fill('configuration', ['setting', 'value'], report.configuration.map(({path, value}) => [path, value]));
}

function showTime() {
  const parts = [...new Set(report.runs.flatMap(run => run.time.map(each => each.part)))];
  $('time-section').hidden = parts.length === 0;
  $('time').replaceChildren(...report.groups.map(group => {
    const box = document.createElement('div'), bar = element('div', '', 'split'),
          words = element('p', '', 'small');
    const seconds = parts.map(part => {
      const all = group.runs.flatMap(r => report.runs[r].time.filter(each => each.part === part));
      return all.reduce((sum, each) => sum + each.seconds, 0) / group.runs.length;
    });
    const whole = seconds.reduce((sum, each) => sum + each, 0);
    parts.forEach((part, k) => {
      if (!(seconds[k] > 0)) return;
      const piece = document.createElement('i'), word = element('span', '', 'part'),
            dot = element('span', '', 'swatch');
      const percent = 100 * seconds[k] / whole;
      piece.style.cssText = `width: ${percent}%; background: ${colorOf(k)}`;
      piece.title = `${part}: ${duration(seconds[k])}`;
      dot.style.background = colorOf(k);
      word.append(dot, `${part} ${percent < 0.1 ? '<0.1' : percent.toFixed(1)} % (${duration(seconds[k])})`);
      bar.append(piece);
      words.append(word, ' ');
    });
    box.append(
        element('div', `${group.label}${group.runs.length > 1 ? `: mean of ${group.runs.length} runs` : ''}`),
        bar, words);
    return box;
  }));
}

function showRuns() {
  const status = run => {
    const reason = run.stop_reason ? `${run.status} (${run.stop_reason})` : run.status;
    return element('span', reason, ['failed', 'killed'].includes(run.status) ? 'bad' : '');
  };
  fill(
      'runs',
      [
        'run', 'group', 'seed', 'status', 'environment', 'algorithm', 'iterations', 'steps', 'time',
        'steps/s', 'agent steps/s', 'peak memory', 'recent return', 'notes'
      ],
      report.runs.map(
          run =>
              [run.name, report.groups[run.group].label, run.seed, status(run), run.env, run.algorithm,
               count(run.iterations), count(run.env_steps), duration(run.wall_s), count(run.steps_per_s),
               count(run.agent_steps_per_s), bytes(run.memory),
               Object.entries(run.returns).map(([name, value]) => `${name} ${number(value)}`).join(', '),
               run.rows === 0      ? 'no metrics' :
                   run.skipped > 0 ? `${run.skipped} lines of metrics.jsonl are not used` :
                                     '']),
      ['seed', 'iterations', 'steps', 'time', 'steps/s', 'agent steps/s', 'peak memory']);
}

// By replicas and steps, with a bar for the speed.
function showSearch() {
  const runs = report.runs.filter(run => run.search), lines = [];
  for (const {name, search: {tries, chosen}} of runs) {
    const most = Math.max(...tries.map(each => each.env_steps_per_s));
    tries.sort((a, b) => a.num_envs - b.num_envs || a.rollout_steps - b.rollout_steps);
    for (const each of tries) {
      const bar = document.createElement('meter'), outcome = each.outcome.replaceAll('_', ' '),
            same = chosen?.num_envs === each.num_envs && chosen.rollout_steps === each.rollout_steps;
      bar.max = most || 1;
      bar.value = each.env_steps_per_s;
      bar.ariaLabel = 'steps/s';
      lines.push([
        name, each.num_envs, each.rollout_steps, each.train_batch_size, bytes(each.bytes || null),
        count(each.env_steps_per_s || null), bar,
        same            ? element('strong', 'chosen') :
            each.detail ? `${outcome}: ${each.detail}` :
                          outcome
      ]);
    }
  }
  $('search-section').hidden = lines.length === 0;
  const numbers = ['replicas', 'T', 'batch', 'memory', 'steps/s'];
  fill('search', ['run', ...numbers, 'speed', 'outcome'], lines, numbers);
}

function showMachines() {
  fill(
      'machines', ['run', 'device', 'workers', 'host', 'processor', 'cores', 'GPUs', 'version', 'commit'],
      report.runs.map(run => {
        const hardware = run.hardware || {}, version = run.version || {};
        return [
          run.name, run.device || '-', word(run.workers), word(hardware.host), word(hardware.cpu),
          word(hardware.cores), [].concat(hardware.gpus ?? []).map(word).join(', ') || '-',
          word(version.program), word(version.commit)
        ];
      }));
}

function showRollouts() {
  const withLinks = report.runs.filter(run => run.rollouts.length > 0);
  $('rollouts-section').hidden = withLinks.length === 0;
  $('rollouts').replaceChildren(...withLinks.map(run => {
    const line = element('p', `${run.name}: `);
    for (const rollout of run.rollouts) {
      const link = element('a', rollout.name.replace('_', ' '));
      link.href = rollout.href;
      line.append(link, ' ');
    }
    return line;
  }));
}

function titleOf() {
  const environments = [...new Set(report.runs.map(run => run.env).filter(env => env))].join(', ');
  if (report.runs.length === 1) return `${environments}: ${report.runs[0].name}`;
  return `${report.runs.length} runs of ${environments}`;
}

async function start() {
  report = await inflate($('report').textContent);
  unpack();
  $('about').textContent = `${report.created}, wd ${report.version}`;
  $('license-text').textContent = $('license').textContent;
  document.querySelector('main').hidden = false;
  $('curves').hidden = report.metrics.length === 0;
  fillMetrics();
  if (report.metrics.length > 0) {
    listen();
    const first = report.metrics.findIndex(each => each.name.endsWith('/recent_return'));
    setMetric(Math.max(first, 0));
    fillPanels();
  }
  for (const part
           of [showScores, showReached, showEvaluation, showSettings, showSearch, showTime, showRuns,
               showMachines, showRollouts])
    part();
  $('title').textContent = document.title = titleOf();
}

start().catch(error => {
  $('problem').hidden = false;
  $('problem').textContent = `The report cannot be shown: ${error.message}`;
});
