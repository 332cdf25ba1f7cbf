//! Arguments of a random program beside its buffer: memory for copies, images, maps of tensors.
//!
//! A kernel has those that its statements name, in the order of `all`. Each has the same contents
//! in every program, and what a program leaves there is compared like its buffer. Numbers in images
//! that are filtered are small multiples of a quarter, so that every weighted sum is exact.

use crate::random::Random;
use sassafras::sim::launch::{ArgValue, Within};
use sassafras::sim::ops::tensor_map::{self, BYTES, MOST};
use sassafras::sim::ops::texture::{Kind, Mode, Shape, Texture, Use};
use std::sync::OnceLock;

/// Bytes of the heap: 128 for each thread of the largest grid.
pub const HEAP: usize = 128 * 256;
/// The heap's place among the arguments if a map points to it.
const HEAP_ARGUMENT: usize = 1;

/// An argument.
#[derive(Clone, Debug)]
pub struct Argument {
    pub name: String,
    pub bytes: Vec<u8>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Memory or an image, whose address or handle is the parameter.
    Buffer,
    /// A map of a tensor in the heap.
    Map,
}

impl Argument {
    /// Its declaration.
    pub fn parameter(&self) -> String {
        match self.what {
            What::Buffer => format!(".param .u64 {}", self.name),
            What::Map => format!(".param .align 64 .b8 {}[{BYTES}]", self.name),
        }
    }

    /// Its text in a file of launches.
    pub fn launched(&self) -> String {
        let bytes = &self.bytes;
        match self.what {
            What::Buffer => format!("inout(type: u8, data: {bytes:?}, expect: interpreter)"),
            What::Map => {
                let words = bytes[8..].chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
                let words: Vec<String> = words.map(|word| format!("u64({word:#x})")).collect();
                format!("struct([at({HEAP_ARGUMENT}, 0), {}])", words.join(", "))
            }
        }
    }

    fn value(&self) -> ArgValue {
        let bytes = self.bytes.clone();
        match self.what {
            What::Buffer => ArgValue::Buffer { bytes, writable: true },
            What::Map => ArgValue::Struct { bytes, addresses: vec![Within { at: 0, arg: HEAP_ARGUMENT, offset: 0 }] },
        }
    }
}

/// The values at the start.
pub fn values(arguments: &[Argument]) -> impl Iterator<Item = ArgValue> {
    arguments.iter().map(Argument::value)
}

/// The arguments that a text names; a map needs the heap.
pub fn named(names: &[String]) -> Vec<Argument> {
    let named = |argument: &&Argument| names.contains(&argument.name);
    let maps = all().iter().any(|argument| argument.what == What::Map && named(&argument));
    all().iter().filter(|argument| named(argument) || maps && argument.name == "heap").cloned().collect()
}

fn all() -> &'static [Argument] {
    static ALL: OnceLock<Vec<Argument>> = OnceLock::new();
    ALL.get_or_init(|| {
        let heap = Argument { name: "heap".to_string(), bytes: vec![0; HEAP], what: What::Buffer };
        let image = |(n, texture): (usize, &Texture)| Argument {
            name: format!("image{n}"),
            bytes: image(texture, n as u64),
            what: What::Buffer,
        };
        let map = |(n, plan): (usize, &Plan)| Argument {
            name: format!("map{n}"),
            bytes: map(plan).to_vec(),
            what: What::Map,
        };
        let images = images();
        let images = images.iter().enumerate().map(image);
        std::iter::once(heap).chain(images).chain(PLANS.iter().enumerate().map(map)).collect()
    })
}

/// Images that programs only read, and then surfaces of which each thread has its own part.
pub const READ: usize = 9;

/// The images, by number.
pub fn images() -> Vec<Texture> {
    let plain = |dimensions| Shape { dimensions, cube: false, layered: false };
    let layers = |dimensions| Shape { dimensions, cube: false, layered: true };
    let cube = Shape { dimensions: 3, cube: true, layered: false };
    let modes = [Mode::Mirror, Mode::Wrap, Mode::Clamp];
    let filtered = |texture: &mut Texture| (texture.linear, texture.normalized) = (true, true);
    let surface = |texture: &mut Texture| texture.used = Use::Surface;
    vec![
        texture(Kind::S32, 1, plain(1), [9, 1, 1], |_| {}),
        texture(Kind::F32, 4, plain(1), [8, 1, 1], |t| {
            filtered(t);
            t.modes = [Mode::Wrap; 3];
        }),
        texture(Kind::F32, 1, plain(2), [6, 5, 1], |t| t.linear = true),
        texture(Kind::F32, 2, plain(3), [4, 4, 3], |t| {
            filtered(t);
            t.modes = modes;
        }),
        texture(Kind::U32, 1, layers(2), [7, 4, 1], |t| (t.layers, t.modes) = (3, [Mode::Border; 3])),
        texture(Kind::F32, 1, plain(2), [8, 8, 1], |t| (t.levels, t.normalized, t.modes) = (3, true, modes)),
        texture(Kind::U32, 1, cube, [4, 4, 1], |_| {}),
        texture(Kind::U16, 4, plain(2), [5, 7, 1], |_| {}),
        texture(Kind::S8, 2, layers(1), [12, 1, 1], |t| t.layers = 5),
        // A line and a plane of 16 bytes for each thread, words of layers, and sums of all threads.
        texture(Kind::U32, 4, plain(1), [256, 1, 1], surface),
        texture(Kind::U32, 1, plain(2), [32, 32, 1], surface),
        texture(Kind::U32, 2, layers(1), [64, 1, 1], |t| {
            surface(t);
            t.layers = 4;
        }),
        texture(Kind::U32, 1, plain(1), [16, 1, 1], surface),
    ]
}

fn texture(kind: Kind, channels: u32, shape: Shape, size: [u32; 3], more: impl FnOnce(&mut Texture)) -> Texture {
    let mut texture = Texture::default();
    (texture.kind, texture.channels, texture.shape, texture.size) = (kind, channels, shape, size);
    more(&mut texture);
    texture
}

/// An image with its texels.
fn image(texture: &Texture, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = texture.header().to_vec();
    let floats = texture.kind == Kind::F32;
    for _ in 0..texture.bytes().div_ceil(8) * 2 {
        let word = match floats {
            true => ((random.below(64) as f32 - 32.0) / 4.0).to_bits(),
            false => random.below(1 << 16) as u32 | (random.below(1 << 16) as u32) << 16,
        };
        bytes.extend(word.to_le_bytes());
    }
    // The kernel's buffers are compared by eights.
    bytes.truncate(texture.header().len() + (texture.bytes() as usize).next_multiple_of(8));
    bytes
}

/// The fields of a map that differ: the type's number and bytes, the elements of the tensor and of
/// a box, the swizzle, and the pixels of a map of images.
pub struct Plan {
    pub ty: u64,
    pub bytes: u64,
    pub sizes: &'static [u64],
    pub boxes: &'static [u64],
    pub swizzle: u64,
    pub image: Option<Image>,
}

/// The pixels of a copy: by how much those of the first and of the last one are off the corners of
/// the tensor, the steps between them, and how many there are.
pub struct Image {
    pub lower: &'static [i64],
    pub upper: &'static [i64],
    pub steps: &'static [u64],
    pub count: u64,
}

/// Maps of the heap's first 4096 bytes, which even one warp fills: of boxes, of rows by four, and
/// of images.
pub const PLANS: [Plan; 14] = [
    Plan { ty: 2, bytes: 4, sizes: &[1000], boxes: &[64], swizzle: 0, image: None },
    Plan { ty: 2, bytes: 4, sizes: &[30, 30], boxes: &[8, 4], swizzle: 0, image: None },
    Plan { ty: 1, bytes: 2, sizes: &[62, 20], boxes: &[16, 8], swizzle: 1, image: None },
    Plan { ty: 0, bytes: 1, sizes: &[64, 60], boxes: &[64, 4], swizzle: 2, image: None },
    Plan { ty: 4, bytes: 8, sizes: &[16, 30], boxes: &[16, 8], swizzle: 3, image: None },
    Plan { ty: 3, bytes: 4, sizes: &[12, 7, 9], boxes: &[4, 3, 2], swizzle: 0, image: None },
    Plan { ty: 2, bytes: 4, sizes: &[8, 4, 5, 6], boxes: &[8, 2, 1, 2], swizzle: 1, image: None },
    Plan { ty: 2, bytes: 4, sizes: &[4, 3, 4, 3, 6], boxes: &[4, 2, 2, 1, 2], swizzle: 0, image: None },
    Plan { ty: 2, bytes: 4, sizes: &[20, 40], boxes: &[16, 1], swizzle: 2, image: None },
    Plan { ty: 1, bytes: 2, sizes: &[62, 32], boxes: &[8, 1], swizzle: 0, image: None },
    Plan { ty: 0, bytes: 1, sizes: &[128, 28], boxes: &[128, 1], swizzle: 3, image: None },
    Plan {
        ty: 1,
        bytes: 2,
        sizes: &[16, 30, 4],
        boxes: &[16],
        swizzle: 1,
        image: Some(Image { lower: &[-2], upper: &[1], steps: &[2], count: 24 }),
    },
    Plan {
        ty: 2,
        bytes: 4,
        sizes: &[8, 5, 4, 5],
        boxes: &[4],
        swizzle: 0,
        image: Some(Image { lower: &[-1, 0], upper: &[-1, 1], steps: &[1, 2], count: 32 }),
    },
    Plan {
        ty: 3,
        bytes: 4,
        sizes: &[4, 4, 3, 5, 4],
        boxes: &[4],
        swizzle: 0,
        image: Some(Image { lower: &[-1, -1, 0], upper: &[0, -1, -2], steps: &[1, 1, 1], count: 20 }),
    },
];

/// The address is the heap's, which the launch fills in.
fn map(plan: &Plan) -> [u8; BYTES] {
    let mut map = [0; BYTES];
    let mut set = |name: &str, index: usize, value: u64| tensor_map::set(&mut map, name, index, value);
    set("rank", 0, plan.sizes.len() as u64 - 1);
    set("elemtype", 0, plan.ty);
    set("swizzle_mode", 0, plan.swizzle);
    set("images", 0, plan.image.is_some().into());
    let mut stride = plan.bytes;
    for i in 0..MOST {
        set("global_dim", i, plan.sizes.get(i).copied().unwrap_or(1));
        if i == 0 || plan.image.is_none() {
            set("box_dim", i, plan.boxes.get(i).copied().unwrap_or(1));
        }
        let steps = plan.image.as_ref().map_or(&[][..], |image| image.steps);
        set("element_stride", i, i.checked_sub(1).and_then(|i| steps.get(i)).copied().unwrap_or(1));
        stride = (stride * plan.sizes.get(i).copied().unwrap_or(1)).next_multiple_of(16);
        if i + 1 < plan.sizes.len() {
            set("global_stride", i, stride);
        }
    }
    if let Some(image) = &plan.image {
        set("pixels_per_column", 0, image.count);
        for (i, (lower, upper)) in image.lower.iter().zip(image.upper).enumerate() {
            set("pixel_box_lower", i, *lower as u64);
            set("pixel_box_upper", i, *upper as u64);
        }
    }
    tensor_map::complete(&mut map);
    map
}
