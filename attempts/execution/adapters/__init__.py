"""What reaches the outside, one file each. Each declares its effect and tells success, failure and unknown apart."""
