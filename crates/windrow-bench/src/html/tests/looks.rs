//! The looks of series: distinct for all readers, in the light and the dark scheme.

use std::collections::BTreeSet;

use super::{all, document};
use crate::html::draw::{canvas, picture};

/// The colors of each scheme, by name; those of the dark one replace those of the light one.
fn colors(dark: bool) -> Vec<(String, [f64; 3])> {
    let styles = [
        include_str!("../draw/plot.css"),
        include_str!("../page.css"),
    ];
    let mut colors = Vec::new();
    for style in styles {
        let (light, rest) = style.split_once("@media screen").unwrap();
        let part = if dark { rest } else { light };
        for line in part.lines() {
            let declared = line
                .trim()
                .strip_prefix("--")
                .and_then(|line| line.split_once(": #"));
            if let Some((name, digits)) = declared {
                let channel = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
                let linear = |at| {
                    let fraction = f64::from(channel(at)) / 255.0;
                    if fraction <= 0.040_45 {
                        fraction / 12.92
                    } else {
                        ((fraction + 0.055) / 1.055).powf(2.4)
                    }
                };
                colors.push((name.to_owned(), [linear(0), linear(2), linear(4)]));
            }
        }
    }
    colors
}

#[test]
fn colors_have_contrast_to_their_background() {
    for dark in [false, true] {
        let colors = colors(dark);
        let luminance = |name: &str| {
            let (_, [red, green, blue]) = colors.iter().find(|(own, _)| own == name).unwrap();
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let contrast = |a: &str, b: &str| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        for text in ["ink", "soft", "link", "good", "bad", "known"] {
            for ground in ["paper", "shade"] {
                assert!(
                    contrast(text, ground) >= 4.5,
                    "{text} on {ground}, dark: {dark}"
                );
            }
        }
        let shapes = (0..picture::STYLES).map(|style| format!("c{style}"));
        for shape in shapes.chain(["edge".to_owned(), "band".to_owned()]) {
            assert!(contrast(&shape, "paper") >= 3.0, "{shape}, dark: {dark}");
        }
    }
}

// I3
#[test]
fn no_two_of_twelve_engines_look_alike() {
    const ENGINES: usize = 12;
    let style = include_str!("../draw/plot.css");
    let rule = |class: &str| {
        let rule = style.split_once(&format!(".{class} {{"));
        rule.and_then(|(_, rest)| rest.split_once('}')).unwrap().0
    };
    let (mut marks, mut bars, mut lines) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for series in 0..ENGINES {
        let area = canvas::Area {
            left: 0.0,
            top: 0.0,
            width: 8.0,
            height: 8.0,
        };
        // Without colors, which not all readers see.
        let colorless = |draw: &dyn Fn(&mut canvas::Canvas)| {
            let mut canvas = canvas::Canvas::default();
            draw(&mut canvas);
            let svg = canvas.finish("", "", 8.0).file();
            let document = document(&svg);
            let shapes = all(&document, "path").chain(all(&document, "rect"));
            let drawn = shapes.filter(|node| {
                let class = node.attribute("class").unwrap_or_default();
                ["mark", "hatch"].iter().any(|kind| class.starts_with(kind)) && class != "hatching"
            });
            let drawn = drawn.map(|node| match node.attribute("d") {
                Some(path) => path.to_owned(),
                None => node.attribute("class").unwrap_or_default().to_owned(),
            });
            drawn.collect::<Vec<String>>()
        };
        marks.insert(colorless(&|canvas| canvas.mark(series, (0.0, 0.0))));
        let hatch = colorless(&|canvas| canvas.bar(series, area));
        bars.insert(hatch.first().map(|class| {
            let style: usize = class.trim_start_matches("hatch").parse().unwrap();
            assert!(rule(class).contains(&format!("url(#{class})")));
            picture::HATCHES[style].unwrap()
        }));
        let line = canvas::line_class("curve", series);
        let classes: Vec<&str> = line.split(' ').skip(1).collect();
        lines.insert(classes.iter().map(|class| rule(class)).collect::<Vec<_>>());
    }
    assert_eq!([marks.len(), bars.len(), lines.len()], [ENGINES; 3]);
    for dark in [false, true] {
        let colors = colors(dark).into_iter();
        let of_series = |name: &str| name.starts_with('c') && name[1..].parse::<usize>().is_ok();
        let colors = colors.filter(|(name, _)| of_series(name));
        let different: BTreeSet<String> = colors.map(|(_, color)| format!("{color:?}")).collect();
        assert_eq!(different.len(), ENGINES, "dark: {dark}");
    }
}
