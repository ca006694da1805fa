//! Statistics read back from the text format of Prometheus.
//!
//! Concurrency: none; plain values.

/// The samples of a text.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Samples(Vec<Sample>);

/// A number with its name and labels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

impl Sample {
    /// The value of a label; empty without it.
    pub(crate) fn label(&self, wanted: &str) -> &str {
        let found = self.labels.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value)
    }
}

impl Samples {
    /// The samples of `text`. Lines that are none are passed.
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(sample).collect())
    }

    /// All samples of the metric `name`.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// The first sample of the metric `name`.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.all(name).next().map(|sample| sample.value)
    }

    /// The sample of the metric `name` with these labels; 0 without it.
    pub(crate) fn of(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has_labels = |sample: &&Sample| {
            let mut wanted = labels.iter();
            wanted.all(|(label, value)| sample.label(label) == *value)
        };
        self.all(name).find(has_labels).map_or(0.0, |it| it.value)
    }

    /// The sum of the samples of the metric `name`.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.all(name).map(|sample| sample.value).sum()
    }
}

fn sample(line: &str) -> Option<Sample> {
    let (head, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let (name, labels) = match head.split_once('{') {
        Some((name, labels)) => (name, parse_labels(labels)?),
        None => (head, Vec::new()),
    };
    let name = name.to_owned();
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// The labels in `rest`, which ends with a brace.
fn parse_labels(mut rest: &str) -> Option<Vec<(String, String)>> {
    let mut labels = Vec::new();
    while rest != "}" {
        let (name, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next()? {
                (end, '"') => break end,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        rest = behind.get(end + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn samples_are_parsed() {
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total 12\n\
            b{x=\"one\",y=\"a \\\"b\\\"\\\\\\nc, }\"} 0.5\nb{x=\"two\",y=\"\"} 2\n\
            c{le=\"+Inf\"} 3\nd NaNs\ne{x=\"\n\n";
        let samples = Samples::parse(text);
        let shown = |number: f64| number.to_string();
        assert_eq!(samples.value("a_total").map(shown), Some("12".to_owned()));
        assert_eq!(shown(samples.of("b", &[("x", "one")])), "0.5");
        let first = samples.all("b").next().unwrap();
        assert_eq!(first.label("y"), "a \"b\"\\\nc, }");
        assert_eq!(first.label("z"), "");
        assert_eq!(shown(samples.sum("b")), "2.5");
        assert_eq!(shown(samples.of("b", &[("x", "three")])), "0");
        assert_eq!(shown(samples.of("c", &[("le", "+Inf")])), "3");
        assert_eq!((samples.value("d"), samples.value("e")), (None, None));
    }
}
