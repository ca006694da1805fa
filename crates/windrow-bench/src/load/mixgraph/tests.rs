//! The distributions of mixgraph against their formulas.

use super::*;

const NUM: u64 = 30_000;
const SAMPLES: u64 = 200_000;

fn mixture(args: &MixgraphArgs) -> Mixture {
    Mixture::new(args, NUM, 3).unwrap()
}

fn model(mix_model: MixModel) -> MixgraphArgs {
    MixgraphArgs {
        mix_model,
        ..MixgraphArgs::default()
    }
}

fn samples<T>(draw: impl Fn(&mut Rng) -> T) -> Vec<T> {
    let mut rng = Rng::new(11);
    (0..SAMPLES).map(|_| draw(&mut rng)).collect()
}

#[test]
fn operations_have_their_fractions() {
    for (given, expected) in [
        ([None, None, None], [0.83, 0.14, 0.03]),
        ([Some(2.0), Some(1.0), Some(1.0)], [0.5, 0.25, 0.25]),
        ([Some(0.0), Some(1.0), Some(0.0)], [0.0, 1.0, 0.0]),
    ] {
        let mixture = mixture(&MixgraphArgs {
            mix_get_ratio: given[0],
            mix_put_ratio: given[1],
            mix_seek_ratio: given[2],
            ..MixgraphArgs::default()
        });
        let drawn = samples(|rng| mixture.operation(rng));
        let kinds = [Operation::Read, Operation::Write, Operation::Seek];
        for (kind, expected) in kinds.into_iter().zip(expected) {
            let met = drawn.iter().filter(|&&operation| operation == kind).count();
            let fraction = met as f64 / SAMPLES as f64;
            assert!((fraction - expected).abs() < 0.005, "{kind:?}: {fraction}");
        }
    }
}

#[test]
fn ranges_are_as_hot_as_the_formula_says() {
    let mixture = mixture(&model(MixModel::PrefixRandom));
    let mut counts = vec![0_u64; 30];
    for index in samples(|rng| mixture.index(rng)) {
        assert!(index < NUM);
        counts[usize::try_from(index / 1000).unwrap()] += 1;
    }
    let mut fractions: Vec<f64> = counts.iter().map(|&n| n as f64 / SAMPLES as f64).collect();
    // The ranges are shuffled: the hottest is not the first one of the formula.
    assert!(!fractions.is_sorted_by(|a, b| a >= b));
    fractions.sort_by(|a, b| b.total_cmp(a));
    let heat = |x: u32| {
        let x = f64::from(x);
        14.18 * (-2.917 * x).exp() + 0.0164 * (-0.08082 * x).exp()
    };
    let sum: f64 = (1..=30).map(heat).sum();
    for (x, fraction) in (1..).zip(&fractions).step_by(7) {
        let expected = heat(x) / sum;
        assert!(
            (fraction / expected - 1.0).abs() < 0.1,
            "{x}: {fraction} {expected}"
        );
    }
}

#[test]
fn hot_keys_follow_the_power_law() {
    // With few ranks, two of them seldom share a key.
    let mixture = mixture(&MixgraphArgs {
        key_dist_a: Some(0.2),
        key_dist_b: Some(0.5),
        ..model(MixModel::AllRandom)
    });
    let mut counts = std::collections::BTreeMap::new();
    for index in samples(|rng| mixture.index(rng)) {
        *counts.entry(index).or_insert(0_u64) += 1;
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // 25 ranks in all: 0.2 times the root of 25 is 1.
    assert!((24..=25).contains(&counts.len()));
    for ranks in [1, 4, 16] {
        let fraction = counts[..ranks].iter().sum::<u64>() as f64 / SAMPLES as f64;
        let expected = 0.2 * (ranks as f64).sqrt();
        assert!((fraction - expected).abs() < 0.01, "{ranks}: {fraction}");
    }
}

#[test]
fn all_random_is_flat_and_models_get_hotter() {
    let hottest = |mix_model| {
        let mixture = mixture(&model(mix_model));
        let mut counts = vec![0_u32; usize::try_from(NUM).unwrap()];
        for index in samples(|rng| mixture.index(rng)) {
            counts[usize::try_from(index).unwrap()] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // The hottest hundredth of the keys.
        f64::from(counts[..300].iter().sum::<u32>()) / SAMPLES as f64
    };
    let random = hottest(MixModel::AllRandom);
    assert!(random < 0.03, "{random}");
    assert!(hottest(MixModel::AllDist) > 1.2 * random);
    assert!(hottest(MixModel::PrefixRandom) > 2.0 * random);
    assert!(hottest(MixModel::PrefixDist) > hottest(MixModel::PrefixRandom));
}

#[test]
fn sizes_and_lengths_have_the_moments_of_their_distribution() {
    let mixture = mixture(&MixgraphArgs::default());
    let sizes = samples(|rng| mixture.value_size(rng));
    assert!(sizes.iter().all(|size| (10..=1024).contains(size)));
    // The median of the distribution: sigma (2^k - 1) / k.
    let fraction =
        |above: usize| sizes.iter().filter(|&&size| size > above).count() as f64 / SAMPLES as f64;
    let expected = |above: f64| (1.0 + 0.2615 * above / 25.45).powf(-1.0 / 0.2615);
    for above in [10_u16, 19, 50, 100, 300] {
        let difference = fraction(above.into()) - expected(above.into());
        assert!(difference.abs() < 0.006, "{above}: {difference}");
    }
    // Its mean is sigma / (1 - k); the bounds and the rounding change it a little.
    let mean = sizes.iter().sum::<usize>() as f64 / SAMPLES as f64;
    assert!((34.0..38.5).contains(&mean), "{mean}");

    let lengths = samples(|rng| mixture.scan_length(rng));
    assert!(lengths.iter().all(|&length| length < 10_000));
    let beyond = |above: f64| (1.0 + 2.517 * above / 14.236).powf(-1.0 / 2.517);
    // Draws above the bound are taken modulo the bound, almost uniformly.
    let above = |bound: u64| lengths.iter().filter(|&&length| length > bound).count();
    let fraction = above(27) as f64 / SAMPLES as f64;
    assert!((fraction - beyond(27.0)).abs() < 0.02, "{fraction}");
}

#[test]
fn an_exponential_distribution_is_the_limit() {
    let exponential = Pareto {
        theta: 5.0,
        k: 0.0,
        sigma: 10.0,
    };
    assert_eq!(exponential.at(1.0), 5);
    assert_eq!(exponential.at((-2.0_f64).exp()), 25);
}

#[test]
fn equal_seeds_draw_alike() {
    let draw = |seed| {
        let mixture = Mixture::new(&MixgraphArgs::default(), NUM, seed).unwrap();
        samples(|rng| mixture.index(rng))
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn impossible_parameters_are_refused() {
    let nothing = MixgraphArgs {
        mix_get_ratio: Some(0.0),
        mix_put_ratio: Some(0.0),
        mix_seek_ratio: Some(0.0),
        ..MixgraphArgs::default()
    };
    let negative = MixgraphArgs {
        mix_get_ratio: Some(-1.0),
        ..MixgraphArgs::default()
    };
    let cold = MixgraphArgs {
        keyrange_dist_a: Some(-1.0),
        keyrange_dist_c: Some(0.0),
        ..MixgraphArgs::default()
    };
    let endless = MixgraphArgs {
        keyrange_dist_b: Some(1e6),
        ..MixgraphArgs::default()
    };
    let narrow = MixgraphArgs {
        keyrange_num: Some(NUM + 1),
        ..MixgraphArgs::default()
    };
    let sigma = MixgraphArgs {
        value_sigma: Some(f64::NAN),
        ..MixgraphArgs::default()
    };
    for args in [nothing, negative, cold, endless, narrow, sigma] {
        assert!(Mixture::new(&args, NUM, 1).is_err(), "{args:?}");
    }
}
