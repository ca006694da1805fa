//! `docs/format.md` agrees with the source.
//!
//! A table row of that document whose first cell is a path in backticks, such as
//! `log::chunk::HEADER_BYTES` or `base::key::Kind::Value`, states the value of that constant or
//! enum code in its second cell. The test compares each such row with the source. Every constant that fixes
//! a byte layout must have a row.

use std::collections::BTreeMap;

use crate::report;
use crate::tree::{code, files, is_word, rust_files};

const SOURCE: &str = "crates/windrow/src/";

/// Constants with these endings fix bytes on disk, and so do those of a module `tag`.
const LAYOUT_ENDINGS: &[&str] = &[
    "MAGIC",
    "VERSION",
    "HEADER_BYTES",
    "FOOTER_BYTES",
    "TRAILER_BYTES",
];

/// The constants and enum codes of the engine: path to expression.
fn constants() -> BTreeMap<String, String> {
    let mut constants = BTreeMap::new();
    for (path, text) in rust_files() {
        let Some(inside) = path.strip_prefix(SOURCE) else {
            continue;
        };
        let module = inside
            .trim_end_matches(".rs")
            .trim_end_matches("/mod")
            .replace('/', "::");
        let blanked = code(&text);
        let mut scope = module.clone();
        let mut at = 0;
        for (line, bare) in text.lines().zip(blanked.lines()) {
            let item = bare.trim_start();
            let item = item.strip_prefix("pub ").unwrap_or(item);
            let item = item.strip_prefix("pub(crate) ").unwrap_or(item);
            let item = item.strip_prefix("pub(super) ").unwrap_or(item);
            let opened = item.strip_prefix("enum ").or(item.strip_prefix("mod "));
            if let Some(name) = opened.filter(|_| bare.ends_with('{')) {
                let name: String = name.chars().take_while(|&c| is_word(c)).collect();
                scope = format!("{module}::{name}");
            } else if bare.starts_with('}') {
                scope.clone_from(&module);
            } else if let Some(declared) = item.strip_prefix("const ") {
                let name: String = declared.chars().take_while(|&c| is_word(c)).collect();
                // A declaration may span lines; its value is read from the text, strings whole.
                let value = text[at..].split_once(" = ").map_or("", |(_, value)| value);
                let value = value.split(';').next().unwrap_or_default().trim();
                constants.insert(format!("{scope}::{name}"), value.to_owned());
            } else if scope != module
                && let Some((name, value)) = item.split_once(" = ")
            {
                let value = value.trim_end_matches(',').trim();
                constants.insert(format!("{scope}::{name}"), value.to_owned());
            }
            at += line.len() + 1;
        }
    }
    constants
}

/// The value of an expression: bytes in quotes as they are, numbers computed.
fn value(expression: &str, module: &str, constants: &BTreeMap<String, String>) -> Option<String> {
    let expression = expression.trim();
    if let Some(start) = expression.find('"') {
        let quoted = expression[start + 1..].split('"').next()?;
        return Some(quoted.to_owned());
    }
    let number = Sum {
        rest: expression,
        module,
        constants,
    }
    .sum()?;
    Some(number.to_string())
}

/// Computes sums, products and shifts of integers and of constants of the same module.
struct Sum<'a> {
    rest: &'a str,
    module: &'a str,
    constants: &'a BTreeMap<String, String>,
}

impl Sum<'_> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        self.rest = rest.strip_prefix(token).unwrap_or(rest);
        self.rest.len() < rest.len()
    }

    fn sum(&mut self) -> Option<u128> {
        let mut total = self.term()?;
        loop {
            if self.take("+") {
                total = total.checked_add(self.term()?)?;
            } else if self.take("-") {
                total = total.checked_sub(self.term()?)?;
            } else if self.take("<<") {
                total = total.checked_shl(u32::try_from(self.term()?).ok()?)?;
            } else {
                return Some(total);
            }
        }
    }

    fn term(&mut self) -> Option<u128> {
        let mut product = self.atom()?;
        while self.take("*") {
            product = product.checked_mul(self.atom()?)?;
        }
        Some(product)
    }

    fn atom(&mut self) -> Option<u128> {
        if self.take("(") {
            let inner = self.sum()?;
            return self.take(")").then_some(inner);
        }
        let rest = self.rest.trim_start();
        let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(length);
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return number(word);
        }
        let expression = self.constants.get(&format!("{}::{word}", self.module))?;
        value(expression, self.module, self.constants)?.parse().ok()
    }
}

/// An integer literal, decimal or hexadecimal, with or without a type.
fn number(literal: &str) -> Option<u128> {
    let literal = literal.replace('_', "");
    let literal = ["u8", "u16", "u32", "u64", "usize"]
        .iter()
        .find_map(|suffix| literal.strip_suffix(suffix))
        .unwrap_or(&literal);
    match literal.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => literal.parse().ok(),
    }
}

/// The rows of the document that state a constant: line, path and value.
fn rows(document: &str) -> Vec<(usize, &str, &str)> {
    let mut rows = Vec::new();
    for (position, row) in document.lines().enumerate() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if let ["", name, value, ..] = cells[..] {
            let name = name
                .strip_prefix('`')
                .and_then(|name| name.strip_suffix('`'));
            if let Some(name) = name.filter(|name| name.contains("::")) {
                rows.push((position + 1, name, value.trim_matches('`')));
            }
        }
    }
    rows
}

#[test]
fn the_format_document_states_the_constants_of_the_source() {
    let files = files();
    let Some(document) = files.iter().find(|file| file.path == "docs/format.md") else {
        return;
    };
    let rows = rows(document.text().expect("documents are text"));
    let constants = constants();
    let mut faults = Vec::new();
    for (line, path, stated) in &rows {
        let module = path.rsplit_once("::").map_or("", |(module, _)| module);
        let actual = constants
            .get(*path)
            .and_then(|found| value(found, module, &constants));
        let stated = number(stated).map_or_else(|| (*stated).to_owned(), |found| found.to_string());
        match actual {
            None => faults.push(format!("docs/format.md:{line}: no constant `{path}`")),
            Some(actual) if actual != stated => {
                faults.push(format!(
                    "docs/format.md:{line}: `{path}` is {actual}, not {stated}"
                ));
            }
            Some(_) => {}
        }
    }
    for path in constants.keys() {
        let fixes_bytes = LAYOUT_ENDINGS.iter().any(|ending| path.ends_with(ending));
        let fixes_bytes = fixes_bytes || path.contains("::tag::");
        if fixes_bytes && !rows.iter().any(|(_, stated, _)| stated == path) {
            faults.push(format!("docs/format.md: has no row for `{path}`"));
        }
    }
    report("docs/format.md and the source differ", &faults);
}

#[test]
fn expressions_are_computed() {
    let constants: BTreeMap<String, String> = [("m::A", "1 << 4"), ("m::B", "A + 2 * (3 + A)")]
        .map(|(k, v)| (k.into(), v.into()))
        .into();
    for (expression, expected) in [
        ("20", Some("20")),
        ("4 + 2 * 8", Some("20")),
        ("64 << 10", Some("65536")),
        ("(1 << 56) - 1", Some("72057594037927935")),
        ("0x1F_u8", Some("31")),
        ("B", Some("54")),
        ("u64::from_le_bytes(*b\"windrow1\")", Some("windrow1")),
        ("C", None),
    ] {
        assert_eq!(
            value(expression, "m", &constants).as_deref(),
            expected,
            "{expression}"
        );
    }
    assert_eq!(constants.len(), 2);
}

#[test]
fn rows_and_constants_are_found() {
    let found = rows("| name | value |\n|---|---|\n| `a::B` | 0x10 | note |\n| `not` | 1 |\n");
    assert_eq!(found, [(3, "a::B", "0x10")]);
    let constants = constants();
    assert_eq!(
        constants
            .get("base::limits::SEGMENTS_MAX")
            .map(String::as_str),
        Some("12")
    );
    assert_eq!(
        constants.get("base::key::Kind::Value").map(String::as_str),
        Some("1")
    );
}
