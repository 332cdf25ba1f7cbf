//! Maps of tensors that random programs make and change (`tensormap.replace`), and copy boxes by.
//!
//! The first warp makes a map in shared memory, from nothing, and publishes it, or one thread of it
//! changes a map in global memory that was a parameter. Each field gets its value, once or twice,
//! in any order. Where the map is, no one compares, since it has an address.

use super::arguments::PLANS;
use super::boxes::copied;
use super::families::{OPEN, Place, heap, meet};
use super::make::register;
use super::tensors::{Kind, Tensor};
use crate::random::Random;

/// Types of elements of each width in bytes.
const TYPES: [(u64, [u64; 3]); 4] = [(1, [0, 0, 0]), (2, [1, 6, 10]), (4, [2, 3, 7]), (8, [4, 5, 9])];
/// Those of which it is known what NaN outside of a tensor is.
const HALVES: [u64; 2] = [6, 10];

/// Whether the target changes maps, and the block is alone.
pub fn fits(place: &Place) -> bool {
    place.own() && place.from(90) && place.cluster == 0
}

/// The values of the fields of a map, in any order, some of them twice.
fn fields(random: &mut Random, place: &Place, tensor: &Tensor) -> Vec<(&'static str, String)> {
    let (plan, ty) = (tensor.plan, tensor.ty);
    let mut all = vec![
        ("global_address.b64", "TG".to_string()),
        ("rank.b32", (tensor.rank() - 1).to_string()),
        ("elemtype.b32", ty.to_string()),
        ("interleave_layout.b32", "0".to_string()),
        ("swizzle_mode.b32", plan.swizzle.to_string()),
        ("fill_mode.b32", (u8::from(HALVES.contains(&ty)) * random.below(2) as u8).to_string()),
    ];
    if place.from(100) {
        let some = usize::from(plan.swizzle == 3) * random.below(2);
        all.push(("swizzle_atomicity.b32", some.to_string()));
    }
    let mut stride = plan.bytes;
    for (i, (size, side)) in plan.sizes.iter().zip(plan.boxes).enumerate() {
        all.push(("global_dim.b32", format!("{i}, {size}")));
        all.push(("box_dim.b32", format!("{i}, {side}")));
        all.push(("element_stride.b32", format!("{i}, 1")));
        stride = (stride * size).next_multiple_of(16);
        if i + 1 < tensor.rank() {
            all.push(("global_stride.b64", format!("{i}, {stride}")));
        }
    }
    for _ in 0..random.below(3) {
        all.push(all[random.below(all.len())].clone());
    }
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i + 1));
    }
    all
}

/// Sets the fields of the map at an address.
fn replaced(random: &mut Random, all: &[(&str, String)], (space, at): (&str, &str)) -> String {
    let mut text = String::new();
    for (field, value) in all {
        let (name, bits) = field.split_once('.').unwrap_or((field, "b32"));
        let fixed = ["elemtype", "interleave_layout", "swizzle_mode", "fill_mode", "swizzle_atomicity"].contains(&name);
        // What is no constant may be in a register, and is the same in all threads or not.
        let value = match (value.rsplit_once(", "), bits) {
            _ if fixed || random.below(2) == 0 => value.clone(),
            (None, "b64") => value.clone(),
            (index, _) => {
                let number = index.map_or(value.as_str(), |(_, number)| number);
                let index = index.map_or(String::new(), |(index, _)| format!("{index}, "));
                let r = register(random, 'r');
                text += &format!("and.b32 TD, {r}, 0; add.u32 TD, TD, {number}; ");
                match bits {
                    "b64" => {
                        text += "cvt.u64.u32 TM, TD; ";
                        format!("{index}TM")
                    }
                    _ => format!("{index}TD"),
                }
            }
        };
        text += &format!("tensormap.replace.tile.{name}{space}.b1024.{bits} {at}, {value}; ");
    }
    text
}

/// Makes or changes a map, and copies boxes by it.
pub fn made(random: &mut Random, place: &Place) -> String {
    let mut tensor = Tensor::one(random, place);
    while matches!(tensor.kind, Kind::Pixels(_)) {
        tensor = Tensor::one(random, place);
    }
    let types = TYPES.iter().find(|(bytes, _)| *bytes == tensor.plan.bytes).map_or([0; 3], |(_, types)| *types);
    tensor.ty = types[random.below(3)];
    let scope = ["cta", "cluster", "gpu", "sys"][random.below(4)];
    let mut text = OPEN.to_string() + ".reg .b16 TX<3>; " + &heap(place);
    text += &format!("mov.b64 TI, slot; add.u64 TG, TH, {}; mul.wide.u32 TM, t, 4; ", 16 * random.below(16));
    text += "setp.ge.u32 TP, t, 32; @TP bra MADE; ";
    let shared = random.below(2) == 0;
    text += &match (shared, random.below(3)) {
        (true, _) => "mov.u32 TA, newmap; mad.lo.u32 TB, t, 4, TA; st.shared.b32 [TB], 0; ".to_string(),
        (_, 0) => "add.u64 TM, TI, TM; st.global.b32 [TM], 0; ".to_string(),
        _ => {
            let boxes: Vec<usize> = (0..PLANS.len()).filter(|n| PLANS[*n].image.is_none()).collect();
            format!(
                "mov.b64 TS, map{}; cvta.param.u64 TS, TS; add.u64 TS, TS, TM; ld.b32 TD, [TS]; \
                 add.u64 TM, TI, TM; st.global.b32 [TM], TD; ",
                boxes[random.below(boxes.len())]
            )
        }
    };
    text += &format!("bar.warp.sync -1; setp.eq.u32 TQ, t, {}; @!TQ bra FIELDS; ", random.below(32));
    let at = match (shared, random.below(2)) {
        (true, 0) => (".shared::cta", "[TA]"),
        (true, _) => {
            text += "mov.u64 TS, newmap; cvta.shared.u64 TS, TS; ";
            ("", "[TS]")
        }
        (_, 0) => (".global", "[TI]"),
        _ => ("", "[TI]"),
    };
    let all = fields(random, place, &tensor);
    text += &replaced(random, &all, at);
    text += &match shared {
        true => format!(
            "FIELDS: bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned \
             [TI], [newmap], 128; "
        ),
        false => format!("fence.proxy.tensormap::generic.release.{scope}; FIELDS: bar.warp.sync -1; "),
    };
    text += &format!("MADE: {}mov.b64 TS, TI; ", meet(random));
    let acquire = format!("@TP fence.proxy.tensormap::generic.acquire.{scope} [TS], 128; ");
    text + &copied(random, place, &tensor, &acquire)
}
