//! Matrix multiplications in random programs.
//!
//! From the rows of `mma` and its sparse variants in the PTX tables it makes statements that build
//! fragments from a program's registers and return the result to registers. Floats are ±1 or ±1.5,
//! so that every sum is exact in any order; metadata names two different elements of each four;
//! scales are 1 and a number near it.

use super::make::register;
use crate::random::Random;
use sassafras::tables::ptx::{Arg, ArgType, FORMS, Form, Role, ScalarType};

/// For each float type: its name, the bits taken from a register, the bits that are set.
pub const FLOATS: [(&str, u64, u64); 7] = [
    ("f16", 0x8200_8200, 0x3c00_3c00),
    ("bf16", 0x8040_8040, 0x3f80_3f80),
    ("tf32", 0x8040_0000, 0x3f80_0000),
    ("f32", 0x8040_0000, 0x3f80_0000),
    ("e4m3", 0x8484_8484, 0x3838_3838),
    ("e5m2", 0x8282_8282, 0x3c3c_3c3c),
    ("f64", 0x8008_0000_0000_0000, 0x3ff0_0000_0000_0000),
];

/// The operations covered.
const OPS: [&str; 3] = ["mma", "mma.sp", "mma.sp::ordered_metadata"];

/// Number and type of a fragment's registers, and the type of its elements.
pub type Fragment = (u8, ScalarType, &'static str);

/// One instruction, and its fragments.
#[derive(Clone, Debug)]
pub struct Product {
    name: String,
    fragments: Vec<Fragment>,
    sparse: bool,
    /// The type of scales, and how many a row of a factor has.
    scales: Option<(&'static str, usize)>,
}

/// For each type of scales: its name, the bits taken from a register, what is added.
const SCALES: [(&str, u32, u32); 2] = [("ue8m0", 0x0101_0101, 0x7e7e_7e7e), ("ue4m3", 0x0404_0404, 0x3838_3838)];

/// The matrix multiplications of the tables: for each row a few choices of types and modifiers.
pub fn products() -> Vec<Product> {
    let mut out: Vec<Product> = Vec::new();
    for form in FORMS.iter().filter(|form| OPS.contains(&form.op.name())) {
        let mut random = Random::new(out.len() as u64);
        for _ in 0..8 {
            let product = product(form, &mut random);
            if out.iter().all(|other| other.name != product.name) {
                out.push(product);
            }
        }
    }
    out
}

/// The operation of a row with the modifiers and types of one choice, and the types.
pub fn spelling(form: &'static Form, random: &mut Random) -> (String, Vec<ScalarType>) {
    let op = form.op.name();
    let (mut front, mut name, mut behind) = (String::new(), String::new(), String::new());
    for rule in form.rules {
        let texts: Vec<&str> =
            (0..32).filter(|i| rule.mask >> i & 1 == 1).map(|i| rule.group.info().texts[i]).collect();
        if !rule.required && random.below(2) == 0 {
            continue;
        }
        let text = random.pick(&texts);
        let apart = ["xor", "and", "or", "popc"].contains(&text);
        let part = match (apart, op) {
            (false, _) => &mut name,
            (true, "wmma.mma") => &mut front,
            (true, _) => &mut behind,
        };
        *part += &format!(".{text}");
    }
    let types: Vec<ScalarType> = form
        .types
        .iter()
        .map(|set| {
            let some: Vec<ScalarType> = ScalarType::ALL.iter().copied().filter(|ty| set & ty.bit() != 0).collect();
            some[random.below(some.len())]
        })
        .collect();
    types.iter().for_each(|ty| name += &format!(".{}", ty.name()));
    (op.to_string() + &front + &name + &behind, types)
}

fn product(form: &'static Form, random: &mut Random) -> Product {
    let (name, types) = spelling(form, random);
    let fragments = form.args.iter().filter(|arg| matches!(arg.role, Role::Fdst | Role::Fsrc));
    let fragments = fragments.zip(&types).take(4).map(|(arg, ty)| (arg.count, held(arg), ty.name())).collect();
    let scales = types.get(4).map(|ty| {
        let each = [(".scale_vec::4X", 4), (".scale_vec::2X", 2), ("::mxf4.", 2)];
        (ty.name(), each.iter().find(|(part, _)| name.contains(part)).map_or(1, |(_, each)| *each))
    });
    Product { sparse: name.starts_with("mma.sp"), name, fragments, scales }
}

/// The type of a fragment's registers.
pub fn held(arg: &Arg) -> ScalarType {
    match arg.ty {
        ArgType::Fixed(ty) => ty,
        _ => unreachable!("fragments have types of their own"),
    }
}

impl Product {
    /// Builds the fragments, executes the instruction, and returns the result to registers.
    pub fn statement(&self, random: &mut Random) -> String {
        let mut text = "{ ".to_string();
        for (n, (count, ty, _)) in self.fragments.iter().enumerate() {
            let ty = if ["f32", "f64"].contains(&ty.name()) { ty.name() } else { "b32" };
            text += &format!(".reg .{ty} F{n}_<{count}>; ");
        }
        for (n, (count, ty, element)) in self.fragments.iter().enumerate().skip(1) {
            let float = FLOATS.iter().find(|f| f.0 == *element);
            for i in 0..*count {
                text += &match (ty.name(), float) {
                    ("f64", Some((_, mask, base))) => {
                        let d = register(random, 'd');
                        format!("and.b64 b, {d}, {mask:#x}; or.b64 b, b, {base:#x}; mov.b64 F{n}_{i}, b; ")
                    }
                    (_, Some((_, mask, base))) => {
                        let r = register(random, 'r');
                        format!("and.b32 a, {r}, {mask:#x}; or.b32 a, a, {base:#x}; mov.b32 F{n}_{i}, a; ")
                    }
                    _ => format!("mov.b32 F{n}_{i}, {}; ", register(random, 'r')),
                };
            }
        }
        let list = |n: usize| {
            let all: Vec<String> = (0..self.fragments[n].0).map(|i| format!("F{n}_{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let metadata = if self.sparse {
            text += &format!(
                "mov.u32 w, {:#x}; ",
                [0x4444_4444u32, 0xeeee_eeee, 0x4e4e_e4e4, 0xee44_44ee][random.below(4)]
            );
            ", w, 0x0"
        } else {
            ""
        };
        let (front, scales) = self.scaled(random);
        text += &front;
        text += &format!("{} {}, {}, {}, {}{metadata}{scales}; ", self.name, list(0), list(1), list(2), list(3));
        let (count, ty, _) = self.fragments[0];
        for i in 0..count {
            text += &match ty.name() {
                "f64" => format!("mov.b64 b, F0_{i}; xor.b64 {0}, {0}, b; ", register(random, 'd')),
                "f32" => format!("mov.b32 a, F0_{i}; xor.b32 {0}, {0}, a; ", register(random, 'r')),
                _ => format!("xor.b32 {0}, {0}, F0_{i}; ", register(random, 'r')),
            };
        }
        text + "}"
    }

    /// What sets the scales of both factors, and the operands: words of scales, the first byte of
    /// those, and the threads that have them. All threads name the same ones.
    fn scaled(&self, random: &mut Random) -> (String, String) {
        let Some((ty, each)) = self.scales else { return Default::default() };
        let (_, mask, base) = SCALES[usize::from(ty == SCALES[1].0)];
        let (mut front, mut operands) = (".reg .b32 S<3>; .reg .b16 U; ".to_string(), String::new());
        front += &format!("mov.u32 S2, %nctaid.y; mul.lo.u32 S2, S2, {}; cvt.u16.u32 U, S2; ", each % 4);
        for (n, threads) in [2, 4].into_iter().enumerate() {
            front += &format!("and.b32 S{n}, {}, {mask:#x}; add.u32 S{n}, S{n}, {base:#x}; ", register(random, 'r'));
            let byte = match random.below(4) {
                0 => "U".to_string(),
                _ => (each * random.below(4 / each)).to_string(),
            };
            let thread = match random.below(4) {
                0 if each == 1 => "U".to_string(),
                _ => random.below(threads).to_string(),
            };
            operands += &format!(", {{S{n}}}, {{{byte}, {thread}}}");
        }
        (front, operands)
    }
}
