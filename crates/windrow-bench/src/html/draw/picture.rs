//! A finished picture as a part of a page or as a file, with its hatches and styles.

use std::fmt::{self, Display};

use crate::html::draw::markup::{Attributes, Markup};

/// The number of series with different looks.
pub(crate) const STYLES: usize = 12;

/// The width of every picture.
pub(crate) const WIDTH: f64 = 640.0;

/// The height of a line of text.
pub(crate) const LINE: f64 = 15.0;

/// Hatches by number; solid ones have none.
pub(crate) const HATCHES: [Option<&str>; STYLES] = [
    None,
    Some("M-1 9L9 -1M-3 3L3 -3M5 11L11 5"),
    Some("M1 2H3.2M5 6H7.2"),
    Some("M-1 -1L9 9M5 -3L11 3M-3 5L3 11"),
    Some("M4 0V8"),
    Some("M0 0L8 8M8 0L0 8"),
    Some("M0 6L4 2L8 6"),
    Some("M0 4H8M4 0V8"),
    Some("M0 2H8M0 6H8"),
    Some("M2 1H6V5H2Z"),
    Some("M0 8L4 0L8 8"),
    Some("M1 0V8M3.4 0V8"),
];

/// The style sheet of the classes of shapes.
pub(crate) const STYLE: &str = include_str!("plot.css");

/// The margin of a picture in a file.
const MARGIN: f64 = 16.0;

/// A coordinate, rounded to a tenth.
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // Not -0.
        write!(f, "{}", tenths + 0.0)
    }
}

/// A finished picture.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    /// Its title, also for screen readers.
    pub(crate) title: String,
    /// Its contents and how to read it, for screen readers.
    description: String,
    height: f64,
    body: String,
}

impl Picture {
    /// The picture of `body`, [`WIDTH`] wide.
    pub(crate) fn new(title: &str, description: &str, height: f64, body: String) -> Self {
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            height,
            body,
        }
    }

    /// Writes the picture into a page with [`hatches`]. `id` is unique there.
    pub(crate) fn draw(&self, page: &mut Markup, id: &str) {
        let view = format!("0 0 {} {}", Px(WIDTH), Px(self.height));
        self.svg(page, id, &[("class", &"plot"), ("viewBox", &view)], |_| {});
    }

    /// The picture as a file, with a margin and its title.
    pub(crate) fn file(&self) -> String {
        let mut file = Markup::default();
        let (left, top) = (Px(-MARGIN), Px(-MARGIN - 2.0 * LINE));
        let width = Px(WIDTH + 2.0 * MARGIN);
        let height = Px(self.height + 2.0 * MARGIN + 2.0 * LINE);
        let view = format!("{left} {top} {width} {height}");
        let size: Attributes<'_> = &[("width", &width), ("height", &height), ("viewBox", &view)];
        self.svg(&mut file, "plot", size, |svg| {
            svg.element("style", &[], |style| style.append(STYLE));
            hatches(svg);
            let paper: Attributes<'_> = &[
                ("class", &"paper"),
                ("x", &left),
                ("y", &top),
                ("width", &width),
                ("height", &height),
            ];
            svg.empty("rect", paper);
            let heading: Attributes<'_> = &[("class", &"head"), ("x", &0), ("y", &Px(-LINE))];
            svg.leaf("text", heading, &self.title);
        });
        file.end_line();
        file.finish()
    }

    fn svg(
        &self,
        markup: &mut Markup,
        id: &str,
        more: Attributes<'_>,
        before: impl FnOnce(&mut Markup),
    ) {
        let (title, description) = (format!("{id}-title"), format!("{id}-description"));
        let labels = format!("{title} {description}");
        let mut attributes: Vec<(&'static str, &dyn Display)> = vec![
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("role", &"img"),
            ("aria-labelledby", &labels),
        ];
        attributes.extend_from_slice(more);
        markup.element("svg", &attributes, |svg| {
            svg.leaf("title", &[("id", &title)], &self.title);
            svg.leaf("desc", &[("id", &description)], &self.description);
            before(svg);
            svg.append(&self.body);
        });
    }
}

/// Writes the hatches of bars, once per page or file.
pub(crate) fn hatches(markup: &mut Markup) {
    let pattern = |markup: &mut Markup, id: &str, class: &str, path: &str| {
        let attributes: Attributes<'_> = &[
            ("id", &id),
            ("width", &"8"),
            ("height", &"8"),
            ("patternUnits", &"userSpaceOnUse"),
        ];
        markup.element("pattern", attributes, |pattern| {
            pattern.empty("path", &[("class", &class), ("d", &path)]);
        });
    };
    markup.element("defs", &[], |defs| {
        for (style, path) in HATCHES.iter().enumerate() {
            if let Some(path) = path {
                pattern(defs, &format!("hatch{style}"), "hatching", path);
            }
        }
        pattern(defs, "stall", "stalling", "M-1 9L9 -1M-3 3L3 -3M5 11L11 5");
    });
}
