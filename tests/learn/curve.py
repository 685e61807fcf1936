"""curve.py: draws how a number grew during trainings, one curve each, as an SVG picture."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 60, 45, 30
COLORS = ["#1b6ca8", "#d1495b", "#2e8b57", "#e09f3e", "#6a4c93"]


def picture(title, bundles):
    """`bundles`: of each metric, one curve per seed, a list of (environment steps, value)."""
    curves = [curve for bundle in bundles for curve in bundle]
    last = max(x for curve in curves for x, _ in curve)
    low, high = min(0.0, *(y for c in curves for _, y in c)), max(0.0, *(y for c in curves for _, y in c))
    high += high == low  # a picture of zeros

    def at(x, y):
        return f"{LEFT + (WIDTH - LEFT - 20) * x / last:.1f},{TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low):.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="18" font-size="{min(14, 1050 // len(title))}">{title}</text>']
    for k in range(5):
        y = low + (high - low) * k / 4
        x0, y0 = at(0, y).split(",")
        lines.append(f'<path d="M{at(0, y)} L{at(last, y)}" stroke="#ddd"/><text x="{float(x0) - 6}" y="{float(y0) + 4}" text-anchor="end">{y:.4g}</text>')
        x = last * k / 4
        lines.append(f'<text x="{at(x, low).split(",")[0]}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x / 1000:.0f} k</text>')
    lines.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">environment steps</text>')
    for bundle in bundles:
        for k, curve in enumerate(bundle):
            lines.append(f'<path d="M{" L".join(at(x, y) for x, y in curve)}" fill="none" stroke="{COLORS[k % 5]}" stroke-width="1.5"/>')
    return "\n".join([*lines, "</svg>", ""])
