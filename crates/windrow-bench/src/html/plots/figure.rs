//! A figure of the page: a picture, its caption, its commands, and its numbers as tables.

use crate::html::digest::EngineRounds;
use crate::html::draw::markup::{Attributes, Markup};
use crate::html::draw::picture::Picture;

/// A picture with its caption, commands and tables.
#[derive(Debug)]
pub(crate) struct Figure {
    /// Its kind, unique in its section.
    pub(crate) kind: String,
    pub(crate) picture: Picture,
    /// Its caption.
    pub(crate) caption: String,
    /// Its commands.
    pub(crate) commands: Vec<String>,
    /// Its numbers.
    pub(crate) tables: Vec<Table>,
}

/// Rows with headings; the first cell is the name of the row.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Its caption.
    pub(crate) caption: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Figure {
    /// Writes the figure; `id` is unique in the page.
    pub(crate) fn write(&self, page: &mut Markup, id: &str) {
        page.element("figure", &[("id", &id)], |figure| {
            self.picture.draw(figure, &format!("{id}-plot"));
            figure.element("figcaption", &[], |caption| {
                caption.leaf("b", &[], format_args!("{}.", self.picture.title));
                caption.text(format_args!(" {}", self.caption));
            });
            if !self.commands.is_empty() {
                let label = format!("Command of: {}", self.picture.title);
                write_command(figure, &label, &self.commands.join("\n"));
            }
            if !self.tables.is_empty() {
                figure.element("details", &[], |details| {
                    details.leaf("summary", &[], "The numbers as a table");
                    for table in &self.tables {
                        table.write(details);
                    }
                });
            }
        });
        page.end_line();
    }
}

impl Table {
    pub(crate) fn write(&self, page: &mut Markup) {
        let attributes: Attributes<'_> = &[
            ("class", &"wide"),
            ("tabindex", &"0"),
            ("role", &"region"),
            ("aria-label", &self.caption),
        ];
        page.element("div", attributes, |wide| {
            wide.element("table", &[], |table| {
                table.leaf("caption", &[], &self.caption);
                table.element("thead", &[], |head| {
                    head.element("tr", &[], |row| {
                        for column in &self.columns {
                            row.leaf("th", &[("scope", &"col")], column);
                        }
                    });
                });
                table.element("tbody", &[], |body| {
                    for cells in &self.rows {
                        body.element("tr", &[], |row| write_cells(row, cells));
                    }
                });
            });
        });
    }
}

fn write_cells(row: &mut Markup, cells: &[String]) {
    for (position, cell) in cells.iter().enumerate() {
        if position == 0 {
            row.leaf("th", &[("scope", &"row")], cell);
        } else {
            row.leaf("td", &[], cell);
        }
    }
}

/// Writes a command as text to copy.
pub(crate) fn write_command(markup: &mut Markup, label: &str, command: &str) {
    let attributes: Attributes<'_> = &[
        ("class", &"command"),
        ("tabindex", &"0"),
        ("role", &"group"),
        ("aria-label", &label),
    ];
    markup.leaf("pre", attributes, command);
}

/// The commands of a figure of these engines, from the median rounds. Commands that differ in the name of the
/// engine only become one shell loop.
pub(crate) fn commands(engines: &[&EngineRounds<'_>]) -> Vec<String> {
    // Each command with a placeholder for the engine, and its engines.
    let mut open: Vec<(String, Vec<(&str, &str)>)> = Vec::new();
    for engine in engines {
        let Some(command) = engine.middle().run.command.as_deref() else {
            continue;
        };
        let words = command.split(' ').map(|word| match word {
            word if word == engine.name => "$engine",
            word => word,
        });
        let template = words.collect::<Vec<_>>().join(" ");
        match open.iter_mut().find(|(found, _)| *found == template) {
            Some((_, those)) => those.push((engine.name, command)),
            None => open.push((template, vec![(engine.name, command)])),
        }
    }
    let lines = open.into_iter().flat_map(|(template, those)| {
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let names: Vec<&str> = those.iter().map(|(name, _)| *name).collect();
        // The shell expands no name within quotes.
        let loops = names.len() > 1 && template.contains("$engine") && !template.contains('\'');
        if loops && names.iter().all(|name| is_plain(name)) {
            let names = names.join(" ");
            return vec![format!("for engine in {names}; do {template}; done")];
        }
        let mut each: Vec<String> = those.iter().map(|(_, command)| (*command).into()).collect();
        each.dedup();
        each
    });
    lines.collect()
}

/// The number of rounds in a caption: "3 rounds".
pub(crate) fn rounds(engines: &[&EngineRounds<'_>]) -> String {
    let most = engines.iter().map(|engine| engine.rounds.len()).max();
    match most.unwrap_or_default() {
        1 => "one round".to_owned(),
        several => format!("{several} rounds"),
    }
}
