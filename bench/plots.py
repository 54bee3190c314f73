"""Line charts and bar charts as SVG text. Nothing in here knows what is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 50, 60
COLORS = ("#1b6ca8", "#d1495b", "#2e8b57", "#b8860b", "#6a4c93", "#00798c", "#8d5524", "#5c5c5c", "#e07a5f", "#3d405b")
FONT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels, along one side."""

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(x) if self.is_logarithmic else x for x in (self.low, self.high, value))
        return (
            (self.start + self.end) / 2
            if high == low
            else self.start + (at - low) / (high - low) * (self.end - self.start)
        )

    def ticks(self) -> list[float]:
        if self.is_logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
            return [tick for tick in found if self.low <= tick * 1.0001 and tick <= self.high * 1.0001]
        step = 10 ** math.floor(math.log10((self.high - self.low) or 1))
        if (self.high - self.low) / step < 4:
            step /= 2
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)]


Line = Sequence[tuple[float, float, float, float]]  # x, median, fastest, slowest


def draw_lines(title: str, x_name: str, lines: Mapping[str, Line], *, is_logarithmic: bool) -> str:
    """Seconds over x, a line for each name, with a bar from the fastest to the slowest at each point."""
    points = [point for line in lines.values() for point in line]
    xs, ys = [point[0] for point in points], [y for point in points for y in point[1:]]
    across = Scale(min(xs), max(xs), LEFT + 15, WIDTH - RIGHT - 15, is_logarithmic)
    up = Scale(min(ys) / 1.3, max(ys) * 1.3, HEIGHT - BOTTOM, TOP, True)
    parts = [_frame(title, x_name, "seconds, logarithmic"), *_y_axis(up)]
    for x in sorted(set(xs)):
        parts.append(
            f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" {FONT}>{_short(x)}</text>'
        )
    for number, (name, line) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        dash = ' stroke-dasharray="5 3"' if number >= len(COLORS) else ""
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y, _, _ in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        for x, y, low, high in line:
            at = f"{across(x):.1f}"
            parts.append(f'<line x1="{at}" x2="{at}" y1="{up(low):.1f}" y2="{up(high):.1f}" stroke="{color}"/>')
            parts.append(f'<circle cx="{at}" cy="{up(y):.1f}" r="3.5" fill="{color}"/>')
        parts.append(_legend(number, name, color))
    return _wrap(parts)


def draw_bars(title: str, bars: Mapping[str, tuple[float, float, float]], unit: str = "seconds") -> str:
    """A bar for each name as long as its median, with a line from the fastest to the slowest."""
    row = 26
    height = TOP + row * len(bars) + 40
    names = 300
    along = Scale(0, max(high for _, _, high in bars.values()) * 1.05, names, WIDTH - 70, False)
    parts = [f'<text x="10" y="24" {FONT} font-weight="bold">{escape(title)}, {escape(unit)}</text>']
    for number, (name, (median, low, high)) in enumerate(bars.items()):
        y = TOP + row * number
        parts += [
            f'<text x="{names - 8}" y="{y + 14}" text-anchor="end" {FONT}>{escape(name)}</text>',
            f'<rect x="{names}" y="{y}" width="{max(1.0, along(median) - names):.1f}" height="18" fill="{COLORS[0]}" opacity="0.8"/>',
            f'<line x1="{along(low):.1f}" x2="{along(high):.1f}" y1="{y + 9}" y2="{y + 9}" stroke="#222"/>',
            f'<text x="{along(high) + 6:.1f}" y="{y + 14}" {FONT}>{_short(median)}</text>',
        ]
    return _wrap(parts, height)


def _frame(title: str, x_name: str, y_name: str) -> str:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    return (
        f'<text x="{LEFT}" y="24" {FONT} font-weight="bold">{escape(title)}</text>'
        f'<text x="{LEFT}" y="42" {FONT} fill="#555">{escape(y_name)}</text>'
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 16}" text-anchor="middle" {FONT}>{escape(x_name)}</text>'
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#222"/>'
    )


def _y_axis(up: Scale) -> list[str]:
    parts = []
    for tick in up.ticks():
        y = f"{up(tick):.1f}"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end" {FONT}>{_short(tick)}</text>')
    return parts


def _legend(number: int, name: str, color: str) -> str:
    x, y = WIDTH - RIGHT + 15, TOP + 10 + 20 * number
    return (
        f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="{color}" stroke-width="3"/>'
        f'<text x="{x + 24}" y="{y}" {FONT}>{escape(name)}</text>'
    )


def _short(value: float) -> str:
    """1200000 -> 1.2M, 0.05 -> 0.05"""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _wrap(parts: Sequence[str], height: int = HEIGHT) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )
