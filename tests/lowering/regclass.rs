//! The register-class descriptors: rows S1-36 to S1-38 and S1-42 of the feature list.
//!
//! The input is `tables/regclass/` and the forms of `tables/encoding/`. Every published category
//! must be that of its opcodes; if the published table lists register files, no form may have an
//! operand outside them.

use sassafras::tables::Op;
use sassafras::tables::encoding::{FORMS, Kind, forms_of};
use sassafras::tables::regclass::{CATEGORIES, Category, Descriptor, FIELDS, LOOK_UPS, MEMORY_PATH, memory_path};

/// The published table, row by row: first and last opcode, first and last category.
const PUBLISHED: [[u16; 4]; 53] = [
    [3, 3, 489, 489],
    [4, 4, 106, 106],
    [5, 5, 490, 490],
    [6, 6, 491, 491],
    [7, 7, 59, 59],
    [8, 8, 60, 60],
    [9, 9, 460, 460],
    [14, 16, 510, 510],
    [17, 18, 517, 517],
    [21, 21, 524, 524],
    [22, 22, 525, 525],
    [24, 24, 517, 517],
    [25, 25, 526, 526],
    [26, 26, 527, 527],
    [27, 27, 497, 497],
    [30, 30, 494, 494],
    [31, 31, 501, 501],
    [32, 32, 502, 502],
    [33, 33, 503, 503],
    [34, 34, 55, 55],
    [35, 35, 56, 56],
    [40, 42, 512, 512],
    [43, 44, 513, 513],
    [45, 45, 516, 516],
    [81, 83, 437, 438],
    [84, 84, 423, 423],
    [85, 86, 423, 424],
    [88, 88, 461, 461],
    [100, 101, 156, 156],
    [102, 103, 463, 463],
    [104, 104, 468, 468],
    [106, 106, 469, 469],
    [108, 109, 469, 469],
    [112, 112, 458, 458],
    [116, 116, 460, 460],
    [119, 121, 528, 530],
    [122, 122, 460, 460],
    [128, 129, 460, 460],
    [130, 130, 487, 487],
    [158, 159, 535, 536],
    [169, 169, 507, 507],
    [170, 170, 508, 508],
    [175, 178, 431, 446],
    [184, 190, 449, 456],
    [192, 192, 476, 476],
    [193, 193, 10, 13],
    [200, 200, 24, 24],
    [201, 211, 61, 455],
    [214, 215, 515, 515],
    [218, 219, 521, 533],
    [220, 220, 534, 534],
    [224, 224, 500, 500],
    [245, 245, 532, 532],
];

#[test]
fn descriptors_are_the_published_ones() {
    let expected: Vec<(u16, [u16; 2])> =
        PUBLISHED.into_iter().flat_map(|[a, b, from, to]| (a..=b).map(move |n| (n, [from, to]))).collect();
    assert_eq!(
        CATEGORIES.iter().map(|c| c.opcode).collect::<Vec<_>>(),
        expected.iter().map(|e| e.0).collect::<Vec<_>>()
    );
    for (row, (_, [from, to])) in CATEGORIES.iter().zip(&expected) {
        assert!((*from..=*to).contains(&row.category), "{row:?}");
        assert_eq!(row.status == "derived", from != to, "{row:?}");
        if let Some(op) = row.op {
            assert_eq!(op as u16, row.opcode);
            assert_eq!(Descriptor::of(op), Some(Descriptor { words: [row.category.into(), 0, 0, 0, 0] }));
        }
    }
    assert_eq!(Descriptor::of(Op::IMAD), None);
    assert_eq!(memory_path(0xf6, false, false), Some((441, [69, 60])));
    assert_eq!(memory_path(0x104, true, false), Some((442, [0, 62])));
    assert_eq!(memory_path(0x108, false, true), Some((443, [72, 60])));
    assert_eq!(memory_path(0xf5, false, false), None);
    assert_eq!((FIELDS.iter().filter(|f| f.id > 90).count(), LOOK_UPS.len(), MEMORY_PATH.len()), (251, 14, 23));
    let groups: std::collections::BTreeSet<_> =
        FIELDS.iter().filter(|f| f.id > 90).map(|f| f.group).filter(|g| !g.is_empty()).collect();
    assert_eq!(groups.len(), 8);
}

/// Seven opcodes with the same published name: every form on every target stays within the files,
/// and the table lists which operands are registers at all.
#[test]
fn forms_keep_to_the_files_of_the_descriptor() {
    let speaks: Vec<Op> = CATEGORIES.iter().filter(|c| !c.files.is_empty()).filter_map(|c| c.op).collect();
    assert_eq!(speaks, [Op::IADD3, Op::SGXT, Op::LOP3, Op::ISETP, Op::IABS, Op::P2R, Op::R2P]);
    for op in speaks {
        let category = Category::of(op).unwrap();
        assert_eq!(op.name(), category.published_as);
        let mut seen = 0;
        for field in FORMS[forms_of(op)].iter().flat_map(|f| f.args) {
            let letter = match field.kind {
                Kind::Reg => "R",
                Kind::UReg => "U",
                Kind::Pred => "P",
                _ => continue,
            };
            let files = category.files_of(field.slot.into());
            assert!(files.is_some_and(|files| files.contains(letter)), "{} slot {}: {letter}", op.name(), field.slot);
            seen += 1;
        }
        assert!(seen > 0, "{}", op.name());
    }
}
