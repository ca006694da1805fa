//! A writer of HTML and SVG that are XML, too.
//!
//! 1. What is opened is closed, by construction.
//! 2. Text and attributes are escaped; only [`Markup::append`] takes finished markup, and that from
//!    another writer or a style sheet of ours.
//! 3. Only [`Markup::empty`] writes a tag that closes itself: for elements that HTML knows as empty,
//!    and for SVG.

use std::fmt::{self, Display, Write};

/// Attributes by name; each value is escaped.
pub(crate) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// Markup that is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Markup {
    text: String,
}

impl Markup {
    /// An element with what `inside` writes.
    pub(crate) fn element(
        &mut self,
        name: &str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Self),
    ) {
        self.tag(name, attributes, ">");
        inside(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// An element with a text.
    pub(crate) fn leaf(&mut self, name: &str, attributes: Attributes<'_>, text: impl Display) {
        self.element(name, attributes, |inside| inside.text(text));
    }

    /// An element with nothing in it.
    pub(crate) fn empty(&mut self, name: &str, attributes: Attributes<'_>) {
        self.tag(name, attributes, "/>");
    }

    /// A text.
    pub(crate) fn text(&mut self, text: impl Display) {
        self.escaped(&text);
    }

    /// A line's end, so that the file can be read.
    pub(crate) fn end_line(&mut self) {
        self.text.push('\n');
    }

    /// Markup that is finished.
    pub(crate) fn append(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// All that was written.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn tag(&mut self, name: &str, attributes: Attributes<'_>, end: &str) {
        self.text.push('<');
        self.text.push_str(name);
        for (attribute, value) in attributes {
            self.text.push(' ');
            self.text.push_str(attribute);
            self.text.push_str("=\"");
            self.escaped(value);
            self.text.push('"');
        }
        self.text.push_str(end);
    }

    fn escaped(&mut self, value: &dyn Display) {
        // Writing to a string fails only where the value's own `Display` does.
        let written = write!(Escaped(&mut self.text), "{value}");
        debug_assert!(written.is_ok());
    }
}

/// Writes text so that it is only text, in elements and in quotes.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\t' | '\n' => self.0.push(character),
                // XML has no way to write these.
                control if control.is_control() => self.0.push(char::REPLACEMENT_CHARACTER),
                '\u{fffe}' | '\u{ffff}' => self.0.push(char::REPLACEMENT_CHARACTER),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}
