"""The mathematics and the training of rotational and diagonal linear recurrent networks."""
