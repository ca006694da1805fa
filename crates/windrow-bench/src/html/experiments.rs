//! The sections of experiments of papers: the verdict, the published and the measured figures, and the table.

use super::draw::markup::{Attributes, Markup};
use super::plots::{Figure, Table, write_command};
use crate::paper::experiment::{Experiment, Verdict};

impl Verdict {
    /// The verdict with its sign.
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

/// The commands of the experiment, or that of the campaign if it has none.
pub(super) fn commands(experiment: &Experiment, campaign_command: &str) -> Vec<String> {
    if experiment.commands.is_empty() && !campaign_command.is_empty() {
        return vec![campaign_command.to_owned()];
    }
    experiment.commands.clone()
}

/// Writes the section of an experiment with a unique identifier.
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
            let commands = commands(experiment, campaign_command);
            if let Some(figure) = figure {
                figure.write(halves, &format!("{id}-figure"));
            } else if !commands.is_empty() {
                let label = format!("Commands of {}", experiment.id);
                write_command(halves, &label, &commands.join("\n"));
            }
        });
    });
    page.end_line();
}

/// Writes the setting, each check with published and measured figures, and the table.
fn write_words(words: &mut Markup, experiment: &Experiment) {
    if !experiment.setting.is_empty() {
        words.leaf("p", &[], &experiment.setting);
    }
    for check in &experiment.checks {
        let verdict = Verdict::of(std::slice::from_ref(check));
        words.element("p", &[("class", &"shape")], |line| {
            line.text(format_args!("{} ", check.shape));
            write_verdict(line, verdict);
        });
        let texts = [
            ("Published", Some(&check.published)),
            ("Measured", Some(&check.measured)),
            ("Explanation", check.explanation.as_ref()),
        ];
        words.element("dl", &[("class", &"figures")], |list| {
            for (term, text) in texts {
                let Some(text) = text else { continue };
                list.element("div", &[], |pair| {
                    pair.leaf("dt", &[], term);
                    pair.leaf("dd", &[], text);
                });
            }
        });
    }
    if !experiment.table.rows.is_empty() {
        table(experiment).write(words);
    }
}

/// Writes the verdict as a framed word.
pub(super) fn write_verdict(markup: &mut Markup, verdict: Verdict) {
    markup.leaf("span", &[("class", &verdict.class())], verdict.text());
}

/// The figures of the experiment.
fn table(experiment: &Experiment) -> Table {
    Table {
        caption: format!("{}: figures", experiment.id),
        columns: experiment.table.columns.clone(),
        rows: experiment.table.rows.clone(),
    }
}
