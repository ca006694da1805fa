//! The sections of experiments of papers: the verdict, what was published beside what was measured,
//! and the figures.

use serde_json::Value;

use super::figure::{Figure, Table, write_command};
use super::markup::{Attributes, Markup};
use super::number;
use super::{Experiment, Verdict};

impl Verdict {
    /// The verdict, with a sign of its own.
    fn text(self) -> &'static str {
        match self {
            Self::Confirmed => "\u{2713} confirmed",
            Self::Differs => "\u{2717} differs",
            Self::Explained => "\u{2248} explained",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Confirmed => "verdict confirmed",
            Self::Differs => "verdict differs",
            Self::Explained => "verdict explained",
        }
    }
}

/// The command that repeats the experiment.
pub(super) fn command<'a>(
    experiment: &'a Experiment,
    campaign_command: &'a str,
) -> Option<&'a str> {
    let commands = [experiment.command.as_str(), campaign_command];
    commands.into_iter().find(|command| !command.is_empty())
}

/// Writes the section of an experiment, under an identifier of its own.
pub(super) fn write_experiment(
    page: &mut Markup,
    experiment: &Experiment,
    id: &str,
    figure: Option<&Figure>,
    campaign_command: &str,
) {
    let attributes: Attributes<'_> = &[("id", &id), ("class", &"experiment")];
    page.element("section", attributes, |section| {
        section.element("h3", &[], |heading| {
            heading.text(format_args!("{}: {} ", experiment.id, experiment.title));
            write_verdict(heading, experiment.verdict);
        });
        section.element("div", &[("class", &"halves")], |halves| {
            halves.element("div", &[], |words| write_words(words, experiment));
            match (figure, command(experiment, campaign_command)) {
                (Some(figure), _) => figure.write(halves, &format!("{id}-figure")),
                (None, Some(command)) => {
                    write_command(halves, &format!("Command of {}", experiment.id), command);
                }
                (None, None) => {}
            }
        });
    });
    page.end_line();
}

/// Writes what was published beside what was measured, and the figures.
fn write_words(words: &mut Markup, experiment: &Experiment) {
    let texts = [
        ("Published", &experiment.published),
        ("Measured", &experiment.measured),
        ("Shape", &experiment.shape),
        ("Explanation", &experiment.explanation),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    words.element("dl", &[("class", &"beside")], |list| {
        for (term, text) in texts {
            list.element("div", &[], |pair| {
                pair.leaf("dt", &[], term);
                pair.leaf("dd", &[], text);
            });
        }
    });
    if !experiment.table.rows.is_empty() {
        table(experiment).write(words);
    }
}

/// Writes the verdict as a word in a frame.
pub(super) fn write_verdict(markup: &mut Markup, verdict: Verdict) {
    markup.leaf("span", &[("class", &verdict.class())], verdict.text());
}

/// The figures of the experiment.
fn table(experiment: &Experiment) -> Table {
    let row = |cells: &Vec<Value>| cells.iter().map(cell).collect();
    Table {
        caption: format!("{}: figures", experiment.id),
        columns: experiment.table.columns.clone(),
        rows: experiment.table.rows.iter().map(row).collect(),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => number::NOTHING.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(figure) if figure.is_f64() => {
            let plain = |figure| number::short(&number::plain(figure));
            figure.as_f64().map_or_else(|| figure.to_string(), plain)
        }
        Value::Number(figure) => figure
            .as_f64()
            .map_or_else(|| figure.to_string(), number::count),
        other => other.to_string(),
    }
}
