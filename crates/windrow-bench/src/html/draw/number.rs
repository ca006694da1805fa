//! Numbers as text: three digits, and a unit that fits the size.

/// The text of a missing number.
pub(crate) const NOTHING: &str = "\u{2013}";

/// A space that does not break the line between a number and its unit.
const SPACE: char = '\u{a0}';

/// Steps of a thousand.
const THOUSANDS: [&str; 6] = ["", "k", "M", "G", "T", "P"];
/// Steps of 1024.
const BYTES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
/// Units of time, in microseconds.
const TIMES: [(f64, &str); 4] = [(1e-3, "ns"), (1.0, "\u{b5}s"), (1e3, "ms"), (1e6, "s")];

/// The format of a figure.
pub(crate) type Format = fn(f64) -> String;

/// A quantity without a unit: `412 k`.
pub(crate) fn quantity(value: f64) -> String {
    stepped(value, 1e3, &THOUSANDS)
}

/// Bytes: `1.5 GiB`.
pub(crate) fn bytes(value: f64) -> String {
    stepped(value, 1024.0, &BYTES)
}

/// Microseconds: `12.5 us`, `3.1 ms`.
pub(crate) fn micros(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    if value.abs() < 5e-7 {
        return "0".to_owned();
    }
    let fits = |&&(unit, _): &&(f64, &str)| value.abs() >= unit * 0.9995;
    let (unit, name) = TIMES.iter().rev().find(fits).unwrap_or(&TIMES[0]);
    format!("{}{SPACE}{name}", three_digits(value / unit))
}

/// Seconds: `12.5 s`.
pub(crate) fn seconds(value: f64) -> String {
    micros(value * 1e6)
}

/// A ratio: `2.31` and a sign of multiplication.
pub(crate) fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{}\u{d7}", three_digits(value))
    } else {
        NOTHING.to_owned()
    }
}

/// A count, with commas: `1,234,567`.
pub(crate) fn count(value: f64) -> String {
    if !value.is_finite() || value.abs() >= 1e15 {
        return quantity(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 {
        text.insert(0, '-');
    }
    text
}

/// A plain number: at least three digits, and all digits before the point.
pub(crate) fn plain(value: f64) -> String {
    if value.is_finite() && value.abs() >= 1e3 {
        count(value)
    } else {
        three_digits(value)
    }
}

/// A quantile in percent, with the necessary digits: `99.9 %`.
pub(crate) fn quantile(value: f64) -> String {
    let text = format!("{:.5}", value * 100.0);
    format!("{}{SPACE}%", trimmed(&text))
}

/// The shortest equal form of `format`: `2 k` for `2.00 k`.
pub(crate) fn short(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && !".-".contains(c));
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    format!("{}{unit}", trimmed(digits))
}

/// The number in `format`, or [`NOTHING`].
pub(crate) fn or_nothing(value: Option<f64>, format: Format) -> String {
    value.map_or_else(|| NOTHING.to_owned(), format)
}

fn stepped(value: f64, step: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next();
    // 999.7 would have four digits.
    while value.abs() >= step.min(999.5) {
        let Some(next) = units.next() else { break };
        value /= step;
        unit = Some(next);
    }
    let digits = if unit == Some(&"B") && value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        three_digits(value)
    };
    match unit {
        None | Some(&"") => digits,
        Some(unit) => format!("{digits}{SPACE}{unit}"),
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => NOTHING.to_owned(),
        0.0 => "0".to_owned(),
        size if !(5e-4..1e6).contains(&size) => format!("{value:.2e}"),
        size if size < 0.0995 => format!("{value:.4}"),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let cases: [(Format, f64, &str); 25] = [
            (quantity, 0.0, "0"),
            (quantity, 412_345.0, "412 k"),
            (quantity, 999.6, "1.00 k"),
            (quantity, 12.0, "12.0"),
            (quantity, -2500.0, "-2.50 k"),
            (quantity, 1e300, "1.00e285 P"),
            (quantity, f64::NAN, NOTHING),
            (bytes, 0.0, "0 B"),
            (bytes, 512.0, "512 B"),
            (bytes, 1536.0, "1.50 KiB"),
            (bytes, 18_446_744_073_709_551_615.0, "16384 PiB"),
            (bytes, f64::INFINITY, NOTHING),
            (micros, 0.0, "0"),
            (micros, 0.25, "250 ns"),
            (micros, 12.5, "12.5 \u{b5}s"),
            (micros, 999.9, "1.00 ms"),
            (micros, 3.6e9, "3600 s"),
            (seconds, 90.0, "90.0 s"),
            (ratio, 2.306, "2.31\u{d7}"),
            (ratio, 0.0051, "0.0051\u{d7}"),
            (count, 1_234_567.4, "1,234,567"),
            (count, -0.2, "0"),
            (plain, 0.8, "0.80"),
            (quantile, 0.999, "99.9 %"),
            (quantile, 0.5, "50 %"),
        ];
        for (format, value, expected) in cases {
            assert_eq!(format(value).replace(SPACE, " "), expected, "{value}");
        }
        assert_eq!(short("2.00\u{a0}k"), "2\u{a0}k");
        assert_eq!(short("200"), "200");
        assert_eq!(short("1.50e3"), "1.5e3");
    }
}
