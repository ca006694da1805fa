//! Keys and values as text: as a person types them, and as they are shown.
//!
//! Concurrency: none; no state.

use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::{Map, Value};
use windrow::{Error, Expiry, Result};

/// How keys and values on the command line are read.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Notation {
    /// Keys and values are hexadecimal, with or without 0x before them
    #[arg(long)]
    hex: bool,

    /// Keys and values are text even if they begin with 0x
    #[arg(long, conflicts_with = "hex")]
    text: bool,
}

impl Notation {
    /// The bytes that `typed` stands for: text, or hexadecimal after `0x`.
    pub(crate) fn parse(self, typed: &str) -> Result<Vec<u8>> {
        let digits = typed.strip_prefix("0x");
        if self.text || (digits.is_none() && !self.hex) {
            return Ok(typed.as_bytes().to_vec());
        }
        from_hex(digits.unwrap_or(typed)).ok_or_else(|| {
            Error::invalid_argument(format!(
                "\"{typed}\" is not hexadecimal: expected pairs of digits 0 to 9 and a to f \
                 (use --text for text that begins with 0x)"
            ))
        })
    }
}

/// The bytes of pairs of hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(high)? << 4 | digit(low)?).ok()
            }
            _ => None,
        })
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// `bytes` as one line of text. Control characters, backslashes and invalid UTF-8 are escaped.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => escaped.push_str("\\\\"),
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                _ if character.is_control() => {
                    escaped.extend(character.escape_unicode());
                }
                _ => escaped.push(character),
            }
        }
        for byte in chunk.invalid() {
            escaped.push_str("\\x");
            escaped.push_str(&to_hex(&[*byte]));
        }
    }
    escaped
}

/// Puts `bytes` into `object` under `name`, or under `name_hex` if they are not UTF-8.
pub(crate) fn put_field(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_hex"), to_hex(bytes).into()),
    };
}

/// An entry as a JSON object, in the form that `load --format jsonl` reads.
pub(crate) fn entry_object(key: &[u8], value: Option<&[u8]>) -> Value {
    let mut object = Map::new();
    put_field(&mut object, "key", key);
    if let Some(value) = value {
        put_field(&mut object, "value", value);
    }
    Value::Object(object)
}

/// The name of the field of an entry as JSON that says when it expires.
pub(crate) const EXPIRY_FIELD: &str = "expires_at_ms";

/// Adds when an entry expires to its JSON object: milliseconds since the start of 1970. One that never expires has no such
/// field.
pub(crate) fn put_expiry(object: &mut Value, expiry: Expiry) {
    if let Expiry::At(time) = expiry {
        let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH);
        let milliseconds = since_1970.unwrap_or_default().as_millis();
        let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
        object[EXPIRY_FIELD] = milliseconds.into();
    }
}

/// The expiry so many milliseconds after the start of 1970.
pub(crate) fn expiry_at(milliseconds: u64) -> Option<Expiry> {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds));
    time.map(Expiry::At)
}

/// A time for people.
pub(crate) fn human_time(time: SystemTime) -> String {
    // The start of the year 10000, which has more digits than that form of a date.
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    if time < end {
        humantime::format_rfc3339_millis(time).to_string()
    } else {
        "a time after the year 9999".to_owned()
    }
}

/// A number of bytes for people.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if amount < 1000.0 {
            break;
        }
        amount /= 1024.0;
        unit = next;
    }
    if amount < 10.0 {
        format!("{amount:.2} {unit}")
    } else {
        format!("{amount:.1} {unit}")
    }
}

/// A count with commas between the thousands.
pub(crate) fn human_count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_bytes_are_text_or_hexadecimal() {
        let plain = Notation::default();
        let hex = Notation {
            hex: true,
            text: false,
        };
        let text = Notation {
            hex: false,
            text: true,
        };
        assert_eq!(plain.parse("abc").unwrap(), b"abc");
        assert_eq!(plain.parse("0x00fF").unwrap(), [0, 255]);
        assert_eq!(hex.parse("00ff").unwrap(), [0, 255]);
        assert_eq!(hex.parse("0x00ff").unwrap(), [0, 255]);
        assert_eq!(text.parse("0x00ff").unwrap(), b"0x00ff");
        for wrong in ["0x1", "0xzz", "0x\u{e9}1"] {
            assert!(plain.parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shown_bytes_fit_on_one_line() {
        assert_eq!(
            escape("caf\u{e9} \\ \n\t\0".as_bytes()),
            "caf\u{e9} \\\\ \\n\\t\\u{0}"
        );
        assert_eq!(escape(b"a\xff\xfeb"), "a\\xff\\xfeb");
        assert_eq!(
            entry_object(b"\xff", Some(b"v")).to_string(),
            r#"{"key_hex":"ff","value":"v"}"#
        );
    }

    #[test]
    fn an_expiry_is_a_number_in_json_and_a_date_for_people() {
        let mut object = entry_object(b"k", None);
        put_expiry(&mut object, Expiry::Never);
        assert_eq!(object.to_string(), r#"{"key":"k"}"#);
        let expiry = expiry_at(1_790_000_000_123).unwrap();
        put_expiry(&mut object, expiry);
        assert_eq!(object[EXPIRY_FIELD], 1_790_000_000_123_u64);
        let text = |milliseconds| match expiry_at(milliseconds) {
            Some(Expiry::At(time)) => human_time(time),
            _ => unreachable!("the time exists"),
        };
        assert_eq!(text(1_790_000_000_123), "2026-09-21T14:13:20.123Z");
        assert_eq!(text(253_402_300_799_999), "9999-12-31T23:59:59.999Z");
        assert_eq!(text(1 << 48), "a time after the year 9999");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(1536), "1.50 KiB");
        assert_eq!(human_bytes(64 << 20), "64.0 MiB");
        assert_eq!(human_bytes(u64::MAX), "16.0 EiB");
        assert_eq!(human_count(7), "7");
        assert_eq!(human_count(1_234_567), "1,234,567");
    }
}
