//! Which experiments there are, and that each of their runs is one that the bench takes.

use super::*;

#[test]
fn experiments_are_chosen_by_id_by_paper_and_all_together() {
    let of = |ids: &[&str]| {
        let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
        chosen(&ids).map(|chosen| chosen.iter().map(|one| one.id).collect::<Vec<_>>())
    };
    assert_eq!(
        of(&["ls-e2", "AU-E10", "LS-E2"]).unwrap(),
        ["AU-E10", "LS-E2"]
    );
    assert_eq!(of(&["px"]).unwrap().len(), 10);
    assert_eq!(of(&["all"]).unwrap().len(), 27);
    let error = of(&["AU-E1", "XX-E1"]).unwrap_err().to_string();
    assert!(
        error.contains("XX-E1") && error.contains("AU-E10"),
        "{error}"
    );
}

#[test]
fn every_run_is_one_that_the_bench_takes() {
    use clap::Parser;
    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        bench: crate::BenchArgs,
    }
    for scale in [0.01, 1.0, 10.0] {
        for experiment in plans() {
            for line in (experiment.lines)(Scale(scale)) {
                let order = line.order(experiment.id);
                let arguments = ["bench".to_owned()].into_iter().chain(order.arguments);
                let parsed = Arguments::try_parse_from(arguments).unwrap().bench;
                parsed.windrow_options().unwrap();
                parsed.data_set().unwrap();
            }
        }
    }
}
