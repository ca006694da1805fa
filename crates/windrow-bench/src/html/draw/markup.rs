//! A writer of HTML and SVG that are well-formed XML.
//!
//! 1. Every element is closed, by construction.
//! 2. Text and attributes are escaped. Only [`Markup::append`] takes finished markup, from another writer or one of
//!    our style sheets.
//! 3. Only [`Markup::empty`] writes a self-closing tag: for the empty elements of HTML, and for SVG.

use std::fmt::{self, Display, Write};

/// Attributes by name; each value is escaped.
pub(crate) type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// Markup under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Markup {
    text: String,
}

impl Markup {
    /// An element with the contents that `inside` writes.
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

    /// An empty element.
    pub(crate) fn empty(&mut self, name: &str, attributes: Attributes<'_>) {
        self.tag(name, attributes, "/>");
    }

    /// A text.
    pub(crate) fn text(&mut self, text: impl Display) {
        self.escaped(&text);
    }

    /// A line break, for readers of the file.
    pub(crate) fn end_line(&mut self) {
        self.text.push('\n');
    }

    /// Appends finished markup.
    pub(crate) fn append(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// The whole markup.
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
        // A write to a string fails only if the `Display` of the value does.
        let written = write!(Escaped(&mut self.text), "{value}");
        debug_assert!(written.is_ok());
    }
}

/// Escapes text for elements and quotes.
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
                // XML cannot represent these.
                control if control.is_control() => self.0.push(char::REPLACEMENT_CHARACTER),
                '\u{fffe}' | '\u{ffff}' => self.0.push(char::REPLACEMENT_CHARACTER),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}
