#pragma once
#include "data/formats/dataset.h"

namespace twiddle {

// The operations of torchvision.transforms.functional on tensors of bytes, formula by formula (_functional_tensor.py),
// with the same truncation to integers. An image of one channel is grey. An operation that needs three colours leaves
// images with another number of channels unchanged.

// image * factor + (1 - factor) * black, its mean grey, itself in grey, or itself blurred: with 1 nothing changes.
void adjust_brightness(Image& image, float factor);
void adjust_contrast(Image& image, float factor);
void adjust_saturation(Image& image, float factor);
void adjust_sharpness(Image& image, float factor);

void adjust_hue(Image& image, float turn);     // of the colour circle: -0.5 to 0.5
void posterize(Image& image, int bits);        // keeps the highest bits of a byte
void solarize(Image& image, float threshold);  // inverts bytes from there on
void autocontrast(Image& image);               // each channel from its darkest to 0, from its brightest to 255
void equalize(Image& image);                   // each channel's histogram

// Moves pixels: (x, y) takes the nearest pixel to (x', y'), and 0 where that lies outside.
void shear_x(Image& image, double slope);  // x' = x + slope (y + 1/2)
void shear_y(Image& image, double slope);  // y' = y + slope (x + 1/2)
void translate(Image& image, int right, int down);
void rotate(Image& image, double degrees);  // about the middle, counter-clockwise

}  // namespace twiddle
