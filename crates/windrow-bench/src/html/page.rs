//! The page: its head, its sections and their order, and the names of the plots.

use std::collections::BTreeSet;

use super::digest::{Group, digest, engines};
use super::draw::markup::{Attributes, Markup};
use super::draw::number;
use super::draw::picture::{STYLE, hatches};
use super::experiments::{write_experiment, write_verdict};
use super::plots::experiment_plot;
use super::plots::levels;
use super::plots::overview;
use super::plots::series;
use super::plots::{Figure, write_command};
use super::plots::{amplification, throughput};
use super::plots::{latency, latency_by_kind};
use super::record::{CampaignRecord, Run};
use super::summary::{TERMS, write_summary};

use crate::paper::experiment::Experiment;

/// The style sheet of the page without its plots.
const PAGE_STYLE: &str = include_str!("page.css");

/// A plot of a campaign as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlotFile {
    /// Its unique file name, of lowercase letters, digits and hyphens.
    pub name: String,
    /// Its contents.
    pub svg: String,
}

/// The self-contained page of `campaign`.
pub fn page(campaign: &CampaignRecord) -> String {
    let groups = digest(campaign);
    let outline = Outline::of(campaign, &groups);
    let mut page = Markup::default();
    page.append("<!DOCTYPE html>\n");
    let attributes: Attributes<'_> = &[("lang", &"en"), ("xmlns", &"http://www.w3.org/1999/xhtml")];
    page.element("html", attributes, |html| {
        html.element("head", &[], |head| write_head(head, campaign));
        html.end_line();
        html.element("body", &[], |body| {
            let hidden: Attributes<'_> = &[
                ("xmlns", &"http://www.w3.org/2000/svg"),
                ("class", &"hatches"),
                ("width", &"0"),
                ("height", &"0"),
                ("aria-hidden", &"true"),
            ];
            body.element("svg", hidden, hatches);
            body.element("header", &[], |header| write_header(header, campaign));
            body.element("main", &[], |main| {
                outline.write_contents(main);
                outline.write_experiments(main, campaign);
                for group in &outline.groups {
                    group.write(main, &engines(campaign));
                }
                if outline.groups.is_empty() && outline.experiments.is_empty() {
                    main.leaf("p", &[], "This campaign has nothing to show yet.");
                }
                if !outline.groups.is_empty() {
                    write_terms(main);
                }
            });
        });
    });
    page.end_line();
    page.finish()
}

/// The plots of `campaign` as self-contained files.
pub fn plots(campaign: &CampaignRecord) -> Vec<PlotFile> {
    let groups = digest(campaign);
    let outline = Outline::of(campaign, &groups);
    let experiments = outline.experiments.iter();
    let experiments = experiments.filter_map(|shown| {
        shown
            .figure
            .as_ref()
            .map(|figure| (shown.id.clone(), figure))
    });
    let of_groups = outline.groups.iter().flat_map(|group| {
        let overview = group.overview.iter().map(|figure| (&group.id, figure));
        let loads = group.loads.iter();
        let of_loads = loads.flat_map(|load| {
            let figures = load.columns.iter().flatten();
            figures.map(|figure| (&load.id, figure))
        });
        overview
            .chain(of_loads)
            .map(|(id, figure)| (format!("{id}-{}", figure.kind), figure))
    });
    let named = experiments.chain(of_groups);
    named
        .map(|(name, figure)| PlotFile {
            name: format!("{name}.svg"),
            svg: figure.picture.file(),
        })
        .collect()
}

/// The contents of the page. Identifiers are also file names.
struct Outline<'a> {
    experiments: Vec<ShownExperiment<'a>>,
    groups: Vec<ShownGroup<'a>>,
}

struct ShownExperiment<'a> {
    id: String,
    experiment: &'a Experiment,
    figure: Option<Figure>,
}

struct ShownGroup<'a> {
    id: String,
    title: String,
    group: &'a Group<'a>,
    overview: Option<Figure>,
    loads: Vec<ShownLoad<'a>>,
}

struct ShownLoad<'a> {
    id: String,
    name: &'a str,
    /// Two columns, if the screen is wide enough: the figures of the load, and those by level, time and kind.
    columns: [Vec<Figure>; 2],
}

impl<'a> Outline<'a> {
    fn of(campaign: &'a CampaignRecord, groups: &'a [Group<'a>]) -> Self {
        let mut ids = Ids::default();
        let first = engines(campaign).first().copied().unwrap_or_default();
        let experiments = campaign
            .experiments
            .iter()
            .map(|experiment| ShownExperiment {
                id: ids.take(&format!("experiment {}", experiment.id)),
                experiment,
                figure: experiment_plot(experiment, &campaign.command),
            });
        let experiments = experiments.collect();
        let groups = groups.iter().map(|group| {
            let title = match group.name {
                "" if groups.len() == 1 => "Loads",
                "" => "Other loads",
                name => name,
            };
            let id = ids.take(title);
            let loads = group.loads.iter().map(|load| {
                let mut kinds = Ids(BTreeSet::new());
                let mut named = |figure: Figure| Figure {
                    kind: kinds.take(&figure.kind),
                    ..figure
                };
                let whole = [throughput(load), latency(load), amplification(load)];
                let whole = whole.into_iter().flatten().map(&mut named).collect();
                let parts = [levels(load), series(load)].into_iter().flatten();
                let parts = parts.chain(latency_by_kind(load)).map(named).collect();
                ShownLoad {
                    id: ids.take(&format!("{title} {}", load.name)),
                    name: &load.name,
                    columns: [whole, parts],
                }
            });
            ShownGroup {
                loads: loads.collect(),
                title: title.to_owned(),
                overview: overview(group, first, &campaign.command),
                group,
                id,
            }
        });
        Self {
            experiments,
            groups: groups.collect(),
        }
    }

    fn write_contents(&self, main: &mut Markup) {
        if self.experiments.is_empty() && self.groups.is_empty() {
            return;
        }
        let link = |item: &mut Markup, id: &str, text: &str| {
            item.leaf("a", &[("href", &format_args!("#{id}"))], text);
        };
        main.element("nav", &[("aria-label", &"Contents")], |nav| {
            nav.element("ul", &[], |list| {
                if !self.experiments.is_empty() {
                    list.element("li", &[], |item| link(item, "experiments", "Experiments"));
                }
                for group in &self.groups {
                    list.element("li", &[], |item| {
                        link(item, &group.id, &group.title);
                        item.element("ul", &[("class", &"loads")], |loads| {
                            for load in &group.loads {
                                loads.element("li", &[], |item| link(item, &load.id, load.name));
                            }
                        });
                    });
                }
            });
        });
        main.end_line();
    }

    fn write_experiments(&self, main: &mut Markup, campaign: &CampaignRecord) {
        if self.experiments.is_empty() {
            return;
        }
        main.element("section", &[("id", &"experiments")], |section| {
            section.leaf("h2", &[], "Experiments");
            section.element("table", &[("class", &"texts")], |table| {
                table.leaf("caption", &[], "Published results that were repeated here");
                table.element("thead", &[], |head| {
                    head.element("tr", &[], |row| {
                        for heading in ["experiment", "subject", "verdict"] {
                            row.leaf("th", &[("scope", &"col")], heading);
                        }
                    });
                });
                table.element("tbody", &[], |body| {
                    for shown in &self.experiments {
                        body.element("tr", &[], |row| write_experiment_row(row, shown));
                    }
                });
            });
            for shown in &self.experiments {
                let figure = shown.figure.as_ref();
                let command = &campaign.command;
                write_experiment(section, shown.experiment, &shown.id, figure, command);
            }
        });
        main.end_line();
    }
}

fn write_experiment_row(row: &mut Markup, shown: &ShownExperiment<'_>) {
    row.element("th", &[("scope", &"row")], |cell| {
        let link = format!("#{}", shown.id);
        cell.leaf("a", &[("href", &link)], &shown.experiment.id);
    });
    row.leaf("td", &[], &shown.experiment.title);
    row.element("td", &[], |cell| {
        write_verdict(cell, shown.experiment.verdict);
    });
}

impl ShownGroup<'_> {
    fn write(&self, main: &mut Markup, engines: &[&str]) {
        let first = engines.first().copied().unwrap_or_default();
        main.element("section", &[("id", &self.id)], |section| {
            section.leaf("h2", &[], &self.title);
            if !self.loads.is_empty() {
                write_summary(section, self.group, first);
            }
            write_failures(section, self.group);
            write_settings(section, self.group, engines);
            if let Some(overview) = &self.overview {
                overview.write(section, &format!("{}-{}", self.id, overview.kind));
            }
            for load in &self.loads {
                load.write(section);
            }
        });
        main.end_line();
    }
}

impl ShownLoad<'_> {
    fn write(&self, page: &mut Markup) {
        let attributes: Attributes<'_> = &[("id", &self.id), ("class", &"load")];
        page.element("section", attributes, |section| {
            section.leaf("h3", &[], self.name);
            section.element("div", &[("class", &"halves")], |halves| {
                for figures in self.columns.iter().filter(|figures| !figures.is_empty()) {
                    halves.element("div", &[], |column| {
                        for figure in figures {
                            figure.write(column, &format!("{}-{}", self.id, figure.kind));
                        }
                    });
                }
            });
        });
        page.end_line();
    }
}

fn write_head(head: &mut Markup, campaign: &CampaignRecord) {
    head.empty("meta", &[("charset", &"utf-8")]);
    let width = "width=device-width, initial-scale=1";
    head.empty("meta", &[("name", &"viewport"), ("content", &width)]);
    head.empty(
        "meta",
        &[("name", &"color-scheme"), ("content", &"light dark")],
    );
    let day = campaign.began.split('T').next().unwrap_or_default();
    let title = if day.is_empty() {
        "Benchmark campaign".to_owned()
    } else {
        format!("Benchmark campaign of {day}")
    };
    head.leaf("title", &[], title);
    head.element("style", &[], |style| {
        style.append(STYLE);
        style.append(PAGE_STYLE);
    });
}

fn write_header(header: &mut Markup, campaign: &CampaignRecord) {
    header.leaf("h1", &[], "Benchmark campaign");
    let machine = &campaign.machine;
    let engines = engines(campaign).join(", ");
    let failed = |run: &&Run| run.failed.is_some();
    let failures = campaign.runs.iter().filter(failed).count();
    let runs = campaign.runs.len() - failures;
    let facts = [
        ("Began", Some(campaign.began.clone())),
        ("Version", Some(campaign.version.clone())),
        ("Processor", machine.processor.clone()),
        ("Cores", machine.cores.map(|cores| cores.to_string())),
        ("Memory", machine.memory_bytes.map(number::bytes)),
        ("System", machine.system.clone()),
        ("Device", campaign.device.map(|limits| limits.text())),
        ("Engines", Some(engines)),
        ("Runs", (runs > 0).then(|| runs.to_string())),
        ("Failed", (failures > 0).then(|| failures.to_string())),
    ];
    header.element("dl", &[("class", &"facts")], |list| {
        for (term, fact) in facts {
            let Some(fact) = fact.filter(|fact| !fact.is_empty()) else {
                continue;
            };
            list.element("div", &[], |pair| {
                pair.leaf("dt", &[], term);
                pair.leaf("dd", &[], fact);
            });
        }
    });
    if !campaign.command.is_empty() {
        write_command(header, "Command of the campaign", &campaign.command);
    }
}

/// Writes the failures of the group, also if a later try passed.
fn write_failures(section: &mut Markup, group: &Group<'_>) {
    if group.failures.is_empty() {
        return;
    }
    section.element("ul", &[("class", &"note")], |list| {
        for failed in &group.failures {
            let run = failed.run;
            let round = run.round.unwrap_or_default() + 1;
            let what = run.failed.as_deref().unwrap_or_default();
            let then = if failed.is_mended {
                "; a later try passed"
            } else {
                ""
            };
            let engine = run.engine_name();
            list.leaf(
                "li",
                &[],
                format_args!("Failed: {engine}, round {round}: {what}{then}"),
            );
        }
    });
    section.end_line();
}

/// Writes the settings of each engine, from its first report in the group.
fn write_settings(section: &mut Markup, group: &Group<'_>, engines: &[&str]) {
    let settings = engines.iter().filter_map(|&name| {
        let loads = group.loads.iter().flat_map(|load| &load.engines);
        let mut rounds = loads
            .filter(|engine| engine.name == name)
            .flat_map(|engine| &engine.rounds);
        let settings = rounds.find_map(|round| round.report.settings.as_ref())?;
        let settings = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let settings: Vec<String> = settings.collect();
        (!settings.is_empty()).then(|| (name, settings.join(", ")))
    });
    let settings: Vec<(&str, String)> = settings.collect();
    if settings.is_empty() {
        return;
    }
    section.element("details", &[], |details| {
        details.leaf("summary", &[], "Settings of the engines");
        let settings = settings.iter();
        write_list(details, settings.map(|(name, text)| (*name, text.as_str())));
    });
    section.end_line();
}

/// Writes names and their meanings.
fn write_list<'t>(parent: &mut Markup, pairs: impl Iterator<Item = (&'t str, &'t str)>) {
    parent.element("dl", &[("class", &"terms")], |list| {
        for (name, text) in pairs {
            list.element("div", &[], |pair| {
                pair.leaf("dt", &[], name);
                pair.leaf("dd", &[], text);
            });
        }
    });
}

fn write_terms(main: &mut Markup) {
    main.element("section", &[("id", &"terms")], |section| {
        section.leaf("h2", &[], "Terms");
        write_list(section, TERMS.into_iter());
    });
    main.end_line();
}

/// The used identifiers, including those of the page's own sections.
struct Ids(BTreeSet<String>);

impl Default for Ids {
    fn default() -> Self {
        Self(["experiments", "terms"].map(str::to_owned).into())
    }
}

impl Ids {
    /// A unique identifier similar to `name`.
    fn take(&mut self, name: &str) -> String {
        let mut id = String::new();
        for character in name.chars() {
            match character.to_ascii_lowercase() {
                plain if plain.is_ascii_alphanumeric() => id.push(plain),
                _ if id.is_empty() || id.ends_with('-') => {}
                _ => id.push('-'),
            }
        }
        let id: String = id.chars().take(80).collect();
        let id = match id.trim_end_matches('-') {
            "" => "part",
            id => id,
        };
        let mut own = id.to_owned();
        let mut number = 2;
        while !self.0.insert(own.clone()) {
            own = format!("{id}-{number}");
            number += 1;
        }
        own
    }
}
