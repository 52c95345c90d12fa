use super::{CHUNK, Cursor, Places};
use proptest::prelude::*;

fn of(values: &[u64]) -> Places {
    let mut places = Places::default();
    values.iter().for_each(|value| places.push(*value));
    places
}

fn all(places: &Places) -> Vec<u64> {
    let mut values = Vec::new();
    places.parts().for_each(|part| part.values(&mut values));
    values
}

fn rising() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![1u64..300, 1u64..(1 << 40)];
    proptest::collection::vec(step, 0..(CHUNK * 4)).prop_map(|steps| {
        let sums = steps.iter().scan(0u64, |sum, step| {
            *sum += step;
            Some(*sum)
        });
        sums.collect()
    })
}

proptest! {
    #[test]
    fn numbers_are_found_as_in_a_plain_list(values in rising(), asked in proptest::collection::vec(any::<u64>(), 20)) {
        let places = of(&values);
        prop_assert_eq!(all(&places), values.clone());
        prop_assert_eq!((places.len(), places.last()), (values.len(), values.last().copied()));
        let mut cursor = Cursor::new(&places);
        let near = values.iter().flat_map(|value| [value - 1, *value, value + 1]);
        for asked in asked.into_iter().chain(near).chain([0, u64::MAX]) {
            let after = values.partition_point(|value| *value < asked);
            prop_assert_eq!(cursor.at_or_after(asked), values.get(after).copied());
            let with = values.partition_point(|value| *value <= asked);
            prop_assert_eq!(cursor.at_or_before(asked), with.checked_sub(1).map(|index| values[index]));
            prop_assert_eq!((places.rank(asked, false), places.rank(asked, true)), (after, with));
        }
    }

    #[test]
    fn what_is_dropped_and_retained_is_what_a_list_would_keep(values in rising(), cut in 0usize..600) {
        let mut places = of(&values);
        let dropped = places.drop_before(cut.min(values.len()));
        prop_assert!(dropped <= cut && dropped + CHUNK > cut.min(values.len()).saturating_sub(CHUNK));
        prop_assert_eq!(all(&places), values[dropped..].to_vec());
        places.retain(|value| value % 3 == 0);
        let kept: Vec<u64> = values[dropped..].iter().copied().filter(|value| value % 3 == 0).collect();
        prop_assert_eq!((all(&places), places.len()), (kept.clone(), kept.len()));
    }
}

#[test]
fn equal_numbers_stand_beside_each_other() {
    let places = of(&[5, 5, 5, 9]);
    assert_eq!((places.rank(5, false), places.rank(5, true), places.rank(9, true)), (0, 3, 4));
    assert_eq!((places.get(0), places.get(3), places.get(4)), (Some(5), Some(9), None));
}

#[test]
fn events_that_lie_together_take_two_bytes_each() {
    let values: Vec<u64> = (1..=100_000u64).map(|at| at * 350).collect();
    let places = of(&values);
    let bytes: usize = places.parts().map(|part| part.deltas.len()).sum();
    assert!(bytes <= 2 * values.len(), "{bytes} bytes");
}
