//! The map and the sorts beside the standard ones.

use super::{SortedMap, by_cached_key, by_key};
use std::collections::BTreeMap;

/// A sequence of numbers without pattern.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn same(map: &SortedMap<u64, u64>, want: &BTreeMap<u64, u64>) {
    assert!(map.iter().eq(want.iter()) && map.iter().rev().eq(want.iter().rev()));
    assert_eq!((map.len(), map.is_empty()), (want.len(), want.is_empty()));
}

#[test]
fn does_what_a_b_tree_does() {
    for keys in [8, 700, 5000] {
        let (mut map, mut want, mut state) = (SortedMap::new(), BTreeMap::new(), 1);
        for step in 0..20_000 {
            let (key, value) = (next(&mut state) % keys, next(&mut state));
            match next(&mut state) % 9 {
                0..4 => assert_eq!(map.insert(key, value), want.insert(key, value)),
                4 => assert_eq!(map.remove(&key), want.remove(&key)),
                5 => *map.entry(key).or_insert(7) += *want.entry(key).and_modify(|v| *v /= 2).or_insert(9),
                6 => assert_eq!(map.get(&key).is_some(), want.contains_key(&key)),
                7 if step % 8 == 0 => assert_eq!(map.pop_first().map(|e| e.0), want.pop_first().map(|e| e.0)),
                7 => assert_eq!(map.pop_last().map(|e| e.0), want.pop_last().map(|e| e.0)),
                _ => {
                    let range = key.min(value % keys)..key.max(value % keys);
                    assert!(map.range(range.clone()).map(|e| e.0).eq(want.range(range.clone()).map(|e| e.0)));
                    assert!(
                        map.range(range.start..=range.end)
                            .rev()
                            .map(|e| e.0)
                            .eq(want.range(range.start..=range.end).rev().map(|e| e.0))
                    );
                }
            }
            want.iter_mut().zip(map.iter()).for_each(|(w, m)| *w.1 = *m.1);
            if step % 1000 == 0 {
                same(&map, &want);
                let copy: SortedMap<_, _> = map.clone().into_iter().rev().collect();
                assert!(copy == map);
                let odd = |key: &u64, value: &mut u64| !key.is_multiple_of(3) && !value.is_multiple_of(5);
                map.retain(odd);
                want.retain(odd);
                same(&map, &want);
            }
        }
    }
}

#[test]
fn sorts_as_the_standard_library_does() {
    for count in [0, 1, 2, 3, 50, 4000] {
        for keys in [1, 7, 100_000] {
            let mut state = count ^ keys;
            let mut want: Vec<(u64, u64)> = (0..count).map(|at| (next(&mut state) % keys, at)).collect();
            let (mut list, mut cached) = (want.clone(), want.clone());
            want.sort_by_key(|entry| entry.0);
            by_key(&mut list, |entry| entry.0);
            by_cached_key(&mut cached, |entry| entry.0);
            assert_eq!((&list, &cached), (&want, &want));
        }
    }
}
