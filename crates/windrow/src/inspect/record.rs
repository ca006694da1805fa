//! The records that a visitor receives, in one form for every kind of file.

use std::fmt;

/// A part of a file: a name and named fields.
///
/// `Display` writes one line, indented below the record that contains it. With the feature `serde`
/// a record serialises as a map of its fields, with its name under `record`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    name: &'static str,
    depth: usize,
    fields: Vec<(&'static str, Field<'a>)>,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field<'a> {
    /// A number; offsets and lengths are in bytes.
    Number(u64),
    /// A word or a sentence.
    Text(&'a str),
    /// Bytes of a user, shown with escapes.
    Bytes(&'a [u8]),
}

impl<'a> Record<'a> {
    /// A record without fields.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            depth: 0,
            fields: Vec::new(),
        }
    }

    /// The same record at depth `depth`, inside a record of depth `depth` - 1.
    pub(super) fn at_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    pub(super) fn number(mut self, name: &'static str, number: u64) -> Self {
        self.fields.push((name, Field::Number(number)));
        self
    }

    pub(super) fn text(mut self, name: &'static str, text: &'a str) -> Self {
        self.fields.push((name, Field::Text(text)));
        self
    }

    pub(super) fn bytes(mut self, name: &'static str, bytes: &'a [u8]) -> Self {
        self.fields.push((name, Field::Bytes(bytes)));
        self
    }

    /// The name of the record: `batch`, `block`, `entry`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The depth of the record inside other records; 0 at the top.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The fields by name, in the order of the file.
    pub fn fields(&self) -> &[(&'static str, Field<'a>)] {
        &self.fields
    }

    /// The field `name`.
    pub fn field(&self, name: &str) -> Option<Field<'a>> {
        let found = self.fields.iter().find(|(field, _)| *field == name);
        found.map(|(_, value)| *value)
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
        }
    }
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:1$}{2}", "", 2 * self.depth, self.name)?;
        let (mut before, mut between) = (": ", ", ");
        for (name, value) in &self.fields {
            write!(f, "{before}{name} {value}")?;
            before = std::mem::take(&mut between);
            between = before;
        }
        Ok(())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Field<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.collect_str(&bytes.escape_ascii()),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Record<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;

        let mut map = serializer.serialize_map(Some(1 + self.fields.len()))?;
        map.serialize_entry("record", self.name)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, Record};

    #[test]
    fn a_record_is_a_line() {
        let entry = Record::new("put").at_depth(1);
        let entry = entry.number("keyspace", 3).bytes("key", b"a\"\n\xff");
        assert_eq!(entry.to_string(), r#"  put: keyspace 3, key "a\"\n\xff""#);
        assert_eq!(entry.field("keyspace"), Some(Field::Number(3)));
        assert_eq!(entry.field("value"), None);
        assert_eq!(Record::new("end").to_string(), "end");
    }
}
