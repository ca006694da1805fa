//! The shapes of plots: text, lines, bars, marks and bands, as SVG.
//!
//! Shapes have classes, and `plot.css` defines their look on a light screen, on a dark one, and on paper. The
//! number of a series determines its color, mark, dashes and hatch, which repeat after [`STYLES`] series. Marks and
//! hatches distinguish series without colors. x grows to the right, y downward.

use std::fmt::Write as _;

use crate::html::draw::axis::Axis;
use crate::html::draw::markup::{Attributes, Markup};
use crate::html::draw::picture::{HATCHES, LINE, Picture, Px, STYLES, WIDTH};

/// The number of dash patterns.
const DASHES: usize = 6;

/// The width of a mark in a legend.
const MARK_WIDTH: f64 = 8.0;

/// The longest name in a plot. Tables have the whole names.
const NAME_CHARS_MAX: usize = 24;

/// Marks by number: paths from their center.
const MARKS: [&str; STYLES] = [
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "m-3.6-3.6h7.2v7.2h-7.2z",
    "m0-4.8l4.7 8.2h-9.4z",
    "m0-5.2l5.2 5.2l-5.2 5.2l-5.2-5.2z",
    "m0 4.8l4.7-8.2h-9.4z",
    "m-1.5-4.8h3v3.3h3.3v3h-3.3v3.3h-3v-3.3h-3.3v-3h3.3z",
    "m0-5l4.7 3.4l-1.8 5.6h-5.8l-1.8-5.6z",
    "m-4.5-4.5l4.5 2.2l4.5-2.2l-2.2 4.5l2.2 4.5l-4.5-2.2l-4.5 2.2l2.2-4.5z",
    "m4.8 0l-8.2 4.7v-9.4z",
    "m-4.8 0l8.2 4.7v-9.4z",
    "m-5.2-2.2h10.4v4.4h-10.4z",
    "m-4.6-4.4h9.2l-4.6 4.4l4.6 4.4h-9.2l4.6-4.4z",
];

/// The classes of a series' line: its color, and its dashes.
pub(crate) fn line_class(kind: &str, series: usize) -> String {
    let style = series % STYLES;
    format!("{kind} s{style} dash{}", style % DASHES)
}

/// The alignment of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle of the canvas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A picture under construction.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    body: Markup,
}

impl Area {
    pub(crate) fn right(self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(self) -> f64 {
        self.top + self.height
    }

    /// The position of a value of the horizontal axis.
    pub(crate) fn x(self, axis: &Axis, value: f64) -> f64 {
        self.left + self.width * axis.place(value)
    }

    /// The position of a value of the vertical axis.
    pub(crate) fn y(self, axis: &Axis, value: f64) -> f64 {
        self.bottom() - self.height * axis.place(value)
    }
}

impl Canvas {
    /// Text of class `class`.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let class = match anchor {
            Anchor::Start => class.to_owned(),
            Anchor::Middle => format!("{class} mid"),
            Anchor::End => format!("{class} end"),
        };
        let attributes: Attributes<'_> = &[("class", &class), ("x", &Px(x)), ("y", &Px(y))];
        self.body.leaf("text", attributes, text);
    }

    /// The name of a series or a row, shortened if necessary.
    pub(crate) fn name(&mut self, at: (f64, f64), anchor: Anchor, name: &str) {
        self.text(at, anchor, "name", &cut(name));
    }

    /// A vertical text at the middle of a side.
    pub(crate) fn text_upwards(&mut self, (x, y): (f64, f64), text: &str) {
        let turn = format!("translate({} {}) rotate(-90)", Px(x), Px(y));
        self.body.leaf(
            "text",
            &[("class", &"unit mid"), ("transform", &turn)],
            text,
        );
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let path = format!("M{} {}L{} {}", Px(from.0), Px(from.1), Px(to.0), Px(to.1));
        self.path(class, &path);
    }

    pub(crate) fn path(&mut self, class: &str, path: &str) {
        self.body.empty("path", &[("class", &class), ("d", &path)]);
    }

    /// A line through points, as relative steps in tenths, which is short.
    pub(crate) fn polyline(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        let mut last: Option<(f64, f64)> = None;
        for (x, y) in points {
            let tenths = ((x * 10.0).round(), (y * 10.0).round());
            let (right, down) = match last {
                None => (tenths.0, tenths.1),
                Some(last) => (tenths.0 - last.0, tenths.1 - last.1),
            };
            let command = if last.is_none() { 'M' } else { 'l' };
            let gap = if down < 0.0 { "" } else { " " };
            let (right, down) = (Px(right / 10.0), Px(down / 10.0));
            let written = write!(path, "{command}{right}{gap}{down}");
            debug_assert!(written.is_ok());
            last = Some(tenths);
        }
        if !path.is_empty() {
            self.path(class, &path);
        }
    }

    pub(crate) fn rect(&mut self, class: &str, area: Area) {
        self.body.empty(
            "rect",
            &[
                ("class", &class),
                ("x", &Px(area.left)),
                ("y", &Px(area.top)),
                ("width", &Px(area.width.max(0.0))),
                ("height", &Px(area.height.max(0.0))),
            ],
        );
    }

    /// A bar of a series, with its hatch.
    pub(crate) fn bar(&mut self, series: usize, area: Area) {
        let style = series % STYLES;
        self.rect(&format!("bar s{style}"), area);
        if HATCHES.get(style).is_some_and(Option::is_some) {
            self.rect(&format!("hatch{style}"), area);
        }
    }

    /// The mark of a series.
    pub(crate) fn mark(&mut self, series: usize, (x, y): (f64, f64)) {
        let style = series % STYLES;
        let shape = MARKS[style];
        let path = format!("M{} {}{shape}", Px(x), Px(y));
        self.path(&format!("mark s{style}"), &path);
    }

    /// A legend: marks and names of several series, over the necessary number of lines. Returns its height.
    pub(crate) fn legend(&mut self, (left, top): (f64, f64), names: &[(usize, &str)]) -> f64 {
        let (mut x, mut y) = (left, top + LINE * 0.7);
        for (series, name) in names {
            let width = MARK_WIDTH + 6.0 + text_width(&cut(name));
            if x + width > WIDTH && x > left {
                (x, y) = (left, y + LINE + 3.0);
            }
            let text = x + MARK_WIDTH + 6.0;
            self.mark(*series, (x + 4.0, y - 4.0));
            self.name((text, y), Anchor::Start, name);
            x = text + text_width(&cut(name)) + 14.0;
        }
        y - top + LINE * 0.6
    }

    /// Grid lines and labels of the axis below `area`.
    pub(crate) fn axis_below(&mut self, area: Area, axis: &Axis, unit: &str) {
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in &axis.ticks {
            let x = area.x(axis, *value);
            self.line("grid", (x, area.top), (x, area.bottom()));
            let half = text_width(label) / 2.0;
            if x - half > free_from {
                self.text((x, area.bottom() + LINE), Anchor::Middle, "tick", label);
                free_from = x + half + 6.0;
            }
        }
        if !unit.is_empty() {
            let middle = (area.left + area.width / 2.0, area.bottom() + 2.2 * LINE);
            self.text(middle, Anchor::Middle, "unit", unit);
        }
    }

    /// Grid lines and labels of the axis to the left of `area`.
    pub(crate) fn axis_left(&mut self, area: Area, axis: &Axis, unit: &str) {
        let mut free_below = f64::INFINITY;
        let mut widest: f64 = 0.0;
        for (value, label) in &axis.ticks {
            let y = area.y(axis, *value);
            self.line("grid", (area.left, y), (area.right(), y));
            if y < free_below {
                self.text((area.left - 6.0, y + 4.0), Anchor::End, "tick", label);
                widest = widest.max(text_width(label));
                free_below = y - LINE;
            }
        }
        if !unit.is_empty() {
            let x = (area.left - widest - 16.0).max(10.0);
            self.text_upwards((x, area.top + area.height / 2.0), unit);
        }
    }

    /// The picture with this `height`.
    pub(crate) fn finish(self, title: &str, description: &str, height: f64) -> Picture {
        Picture::new(title, description, height.ceil(), self.body.finish())
    }
}

/// A name that fits; three dots mark a shortened one.
pub(crate) fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    let kept: String = name.chars().take(NAME_CHARS_MAX - 1).collect();
    format!("{kept}\u{2026}")
}

/// An upper estimate of the width of a text.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

/// The width of the longest name.
pub(crate) fn names_width<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    names.map(|name| text_width(&cut(name))).fold(0.0, f64::max)
}
