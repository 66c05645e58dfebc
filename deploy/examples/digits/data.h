/* SPDX-License-Identifier: Apache-2.0
 * The images: records of 64 bytes of pixels, 0 to 16, and one byte of label, 0 to 9. */
#ifndef DIGITS_DATA_H
#define DIGITS_DATA_H

#include <cadre/cadre.h>

/* About the mean and the deviation of all pixels: the model learns better from centred numbers. */
#define PIXEL_MEAN      4.9f
#define PIXEL_DEVIATION 6.0f
#define BACKGROUND      (-PIXEL_MEAN / PIXEL_DEVIATION)

/* Elements (image f32 [64], centred, label i32 scalar) of the file `name` in `folder`; with
 * `folder` NULL in the working folder, else beside the executable. A file that is not there comes
 * out as the dataset's error. */
cadre_dataset *digits_open(const char *program, const char *folder, const char *name);

/* Copies `image`, moved by up to one pixel each way, to `ret_image`: training on moved images
 * teaches the model not to mind. Where to is a function of the image and of `epoch` alone, so that
 * it does not depend on which replica gets the image. */
void digits_move(const float *image, uint64_t epoch, float *ret_image);

#endif
